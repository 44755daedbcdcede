import { z } from 'zod'

/** The kinds of values in `bridge.json`. Titles double as the "what is allowed" of an error where the type alone says too little. */

/** A section whose keys all have defaults: absent means empty. */
export const section = <Shape extends z.ZodRawShape>(description: string, shape: Shape) =>
  z
    .strictObject(shape)
    // True for every shape that is given here: the tests load an empty file
    .prefault({} as z.input<z.ZodObject<Shape, z.core.$strict>>)
    .meta({ description })

export const flag = (description: string, initial: boolean) => z.boolean().default(initial).meta({ description })

export const text = (description: string) => z.string().min(1).meta({ description })

export const whole = (description: string, range: { readonly min: number; readonly max?: number }) =>
  z
    .int()
    .min(range.min)
    .max(range.max ?? Number.MAX_SAFE_INTEGER)
    .meta({ description })

export const count = (description: string, initial: number, min = 1) => whole(description, { min }).default(initial)

export const milliseconds = (description: string) =>
  whole(`${description} Milliseconds.`, { min: 0, max: 2_147_483_647 })

export const share = (description: string, initial: number) =>
  z.number().min(0).max(1).default(initial).meta({ description })

export const oneOf = <const T extends readonly [string, ...string[]]>(description: string, values: T) =>
  z.enum(values).meta({ description })

/** Never printed: not by `status`, `config explain` or an error. `writeOnly` is JSON Schema's own word for it. */
export const secret = (description: string) => z.string().min(1).meta({ description, writeOnly: true })

export const address = (description: string, schemes: readonly string[]) =>
  z
    .string()
    .refine((value) => URL.canParse(value) && schemes.includes(new URL(value).protocol.slice(0, -1)))
    .meta({ description, title: `an address beginning with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}` })

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/

/** `"90s"`, `"5m"`; a bare number counts minutes, as in the files this key comes from. The result is in milliseconds. */
export const duration = (description: string) =>
  z
    .union([z.number().min(0), z.string().regex(DURATION)])
    .transform((value) => {
      const [, amount, unit] = DURATION.exec(String(value)) ?? []
      return Math.round(Number(amount) * (UNIT_MS[unit ?? 'm'] ?? 0))
    })
    .meta({ description, title: 'a duration such as "90s", "5m" or "1h"' })
