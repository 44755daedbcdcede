import { accessAttacks } from './access.ts'
import { AttackWorld, Finding, type Attack } from './attack.ts'
import { doorAttacks } from './doors.ts'
import { homeAttacks } from './homes.ts'
import { memoryAttacks } from './memory.ts'
import { messageAttacks } from './messages.ts'
import { operationAttacks } from './operations.ts'
import { serverAttacks } from './servers.ts'
import { toolAttacks } from './tools.ts'

/** Every finding of the audit and what held, in the order of its rows. */
export const ATTACKS: readonly Attack[] = [
  ...messageAttacks,
  ...toolAttacks,
  ...serverAttacks,
  ...memoryAttacks,
  ...accessAttacks,
  ...doorAttacks,
  ...homeAttacks,
  ...operationAttacks,
].toSorted((a, b) => rank(a.row) - rank(b.row))

function rank(row: string): number {
  return row === 'held' ? 1_000 : Number.parseInt(row, 10)
}

export interface AttackResult {
  readonly attack: Attack
  readonly isFinding: boolean
  readonly seen: string
}

export async function runAttack(attack: Attack, seed: number): Promise<AttackResult> {
  const world = new AttackWorld(seed)
  try {
    return { attack, isFinding: false, seen: await attack.run(world) }
  } catch (thrown) {
    const seen = thrown instanceof Error ? thrown.message.split('\n', 1)[0] : String(thrown)
    return { attack, isFinding: true, seen: thrown instanceof Finding ? (seen ?? '') : `not carried out: ${seen}` }
  } finally {
    await world.close()
  }
}
