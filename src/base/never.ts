import { setMaxListeners } from 'node:events'

/** For waits without a way to abort them: something else bounds each of them. Any number may listen. */
export const NEVER: AbortSignal = new AbortController().signal

setMaxListeners(0, NEVER)
