/** A model to try, with the entry of its provider. */
export interface Tested {
  readonly name: string
  readonly entry: Readonly<Record<string, unknown>>
  readonly model: string
}

/** Fields of an entry that are objects themselves. */
const PARTS: readonly string[] = ['models', 'headers']

/** An entry by itself, under its name, or with the lines of a `bridge.json` around it; undefined for anything else. */
export function readPasted(text: string, { name, model }: Pick<Tested, 'name' | 'model'>): Tested | undefined {
  const found = objectIn(text)
  if (found === undefined) return undefined
  const all = isObject(found['providers']) ? found['providers'] : underName(found)
  if (all === undefined) return { name, model, entry: found }
  const [first] = Object.entries(all)
  if (first === undefined || !isObject(first[1])) return undefined
  const ref = typeof found['model'] === 'string' ? found['model'] : ''
  const prefix = `${first[0]}/`
  return { name: first[0], entry: first[1], model: ref.startsWith(prefix) ? ref.slice(prefix.length) : model }
}

/** As it may stand in a file: its key is a variable there, whatever was pasted. */
export function keptEntry({ name, entry }: Pick<Tested, 'name' | 'entry'>): Readonly<Record<string, unknown>> {
  const { apiKey } = entry
  if (typeof apiKey !== 'string' || apiKey.startsWith('$')) return entry
  return { ...entry, apiKey: `$${name.toUpperCase().replaceAll(/[^A-Z0-9]+/gu, '_')}_API_KEY` }
}

function underName(found: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> | undefined {
  const [only, ...more] = Object.entries(found)
  return only !== undefined && more.length === 0 && isObject(only[1]) && !PARTS.includes(only[0]) ? found : undefined
}

/** Lines that were copied from the middle of a file have no braces around them, and may end with a comma. */
function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  const lines = text.trim().replace(/,$/u, '')
  if (lines === '') return undefined
  for (const one of [lines, `{${lines}}`]) {
    try {
      const found: unknown = JSON.parse(one)
      if (isObject(found)) return found
    } catch {
      // The next form may be the right one.
    }
  }
  return undefined
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
