import { createRequire } from 'node:module'

/** From the package itself, also when it runs from its sources. */
const { version } = createRequire(import.meta.url)('../../package.json') as { readonly version: string }

export const VERSION = version
