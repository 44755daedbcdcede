import { randomBytes, randomUUID } from 'node:crypto'
import type { Ids } from '../base/ids.ts'

/** Randomness of this machine, fit for secrets. */
export const systemIds: Ids = {
  uuid: () => randomUUID(),
  hex: (length) =>
    randomBytes(Math.ceil(length / 2))
      .toString('hex')
      .slice(0, length),
  fraction: () => Math.random(),
}
