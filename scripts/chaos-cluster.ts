import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { build } from '../test/support/built-gateway.ts'
import { plant, PLANTED } from '../test/support/chaos/planted.ts'
import { runChaos } from '../test/support/chaos/run.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '600' },
    clients: { type: 'string', default: '50' },
    keep: { type: 'string' },
    nodes: { type: 'string', default: '3' },
    fault: { type: 'string' },
    stops: { type: 'string' },
  },
})

const EVERY_MS = 2_000
const say = (line: string): void => void process.stdout.write(`${line}\n`)

await build()
// A build meanwhile must not change what runs.
const planted = await plant(values.fault)
const fault = values.fault === undefined ? undefined : PLANTED[values.fault]
const report = await runChaos({
  seed: Number(values.seed),
  nodes: Number(values.nodes),
  clients: Number(values.clients),
  messages: Number.POSITIVE_INFINITY,
  faults: Math.ceil((Number(values.seconds) * 1_000) / EVERY_MS),
  faultEveryMs: EVERY_MS,
  leaseMs: 2_000,
  stops: values.stops === undefined ? fault?.stops : Number(values.stops),
  only: fault?.by,
  program: [planted.program],
  keep: (history, tables) => {
    if (values.keep !== undefined) writeFileSync(values.keep, JSON.stringify({ history, tables }, null, 1))
  },
  say,
})
await planted.remove()
const { violations, ...figures } = report
say(JSON.stringify(figures, null, 2))
for (const violation of violations) say(`VIOLATION ${violation}`)
say(`seed ${values.seed}: ${violations.length} violations`)
process.exitCode = violations.length === 0 ? 0 : 1
