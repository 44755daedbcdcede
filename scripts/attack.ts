import { build } from '../test/support/built-gateway.ts'
import { ATTACKS, runAttack } from '../test/support/attack/index.ts'

/**
 * `npm run attack [-- --seed S --row R --quick]`: tries what the audit tried against the built gateway, on loopback, one attack
 * after the other, each with homes of its own. Prints a table; a finding, or an attack that could not be carried out, ends it
 * with 1. Every attack is bounded, the whole takes less than ten minutes.
 */
const LIMIT_MS = 10 * 60_000

const seed = Number(argument('--seed') ?? 20_261_116)
const row = argument('--row')
const chosen = ATTACKS.filter(
  (attack) => (row === undefined || attack.row === row) && (!process.argv.includes('--quick') || attack.quick === true),
)
await build()
const startedAt = performance.now()
console.log(`${chosen.length} attacks, seed ${seed}\n`)
let findings = 0
for (const attack of chosen) {
  if (performance.now() - startedAt > LIMIT_MS) {
    console.log('ten minutes are over; the rest was not tried')
    findings++
    break
  }
  const { isFinding, seen } = await runAttack(attack, seed)
  if (isFinding) findings++
  console.log(`${isFinding ? 'FINDING' : 'held   '}  ${attack.row.padEnd(4)}  ${attack.title}\n               ${seen}`)
}
console.log(
  `\n${chosen.length} attacks in ${Math.round((performance.now() - startedAt) / 1000)} s, seed ${seed}: ${findings} findings`,
)
process.exitCode = findings === 0 ? 0 : 1

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}
