import { checkFile, FILE_TARGETS } from '../test/support/file-fuzz/check.ts'
import { checkGateway } from '../test/support/file-fuzz/gateway.ts'
import { checkSeeds } from './lib/check-seeds.ts'

const GATEWAY_EVERY = 100
/** Of processor time. The largest file here has less than two megabytes and is prepared eight times. */
const MAX_CASE_MS = 2_000

/**
 * `npm run fuzz:files [-- --cases N --seed S --workers W]`: transcript files with odd values in any field, and with
 * damaged bytes, lines and order, through the store, six encoders and their strict checkers, a repair and a second
 * message; every hundredth also through a whole gateway with commands. Fails on anything that throws, a request that a
 * provider would refuse, a word that is lost from view, and a case that keeps the processor busy.
 */
await checkSeeds({
  script: import.meta.filename,
  what: 'files',
  apis: FILE_TARGETS.length,
  cases: 1_000_000,
  async check(seed) {
    const before = process.cpuUsage()
    const failures = await checkFile(seed)
    const { user, system } = process.cpuUsage(before)
    const busyMs = (user + system) / 1_000
    const stalls = busyMs > MAX_CASE_MS ? [{ api: 'all', problem: `busy for ${Math.round(busyMs)} ms` }] : []
    const served = seed % GATEWAY_EVERY === 0 ? await checkGateway(seed) : []
    return [...failures, ...stalls, ...served]
  },
})
