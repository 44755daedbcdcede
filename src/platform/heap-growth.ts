import { setFlagsFromString } from 'node:v8'

const PERCENT = 100

/**
 * Garbage is collected when the heap is twice what was in use after the last time. Without a bound V8 waits on a large
 * machine until it is four times as much, and a gateway with a thousand conversations takes most of a gigabyte. For a
 * process of our own only.
 */
export function boundHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${PERCENT}`)
}
