import { setMaxListeners } from 'node:events'

/** For waits nobody calls off: something else bounds each of them. Any number may listen. */
export const NEVER: AbortSignal = new AbortController().signal

setMaxListeners(0, NEVER)
