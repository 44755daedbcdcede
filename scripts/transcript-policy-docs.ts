import { writeFileSync } from 'node:fs'
import { policyDocs } from '../test/support/policy-docs.ts'

writeFileSync('docs/maintainers/transcript-policy.md', policyDocs())
console.log('docs/maintainers/transcript-policy.md written')
