import { boundHeapGrowth } from '../../src/platform/heap-growth.ts'

/** Holds about 100 MB, makes much more garbage that lives for a while, and prints the most that the heap took. */
const megabytes = (): number => process.memoryUsage().heapUsed / 2 ** 20
const collect = (globalThis as { gc?: () => void }).gc

if (process.argv[2] !== 'unbounded') boundHeapGrowth()
const held = Array.from({ length: 800_000 }, (_, at) => ({ at, text: `text ${at}` }))
const recent: object[] = Array.from({ length: 100_000 }, (_, at) => ({ at, list: [at] }))
collect?.()
const inUse = megabytes()
let most = 0
for (let at = 0; at < 12_000_000; at++) {
  recent[at % recent.length] = { at, list: [at] }
  if (at % 10_000 === 0) most = Math.max(most, megabytes())
}
console.log(JSON.stringify({ inUse, most, held: held.length }))
