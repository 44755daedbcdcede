import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { configDocs } from '../test/support/config-docs.ts'

writeFileSync(join(import.meta.dirname, '..', 'docs', 'configuration.md'), configDocs())
