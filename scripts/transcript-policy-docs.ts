import { writeFileSync } from 'node:fs'
import { policyDocs } from '../test/support/policy-docs.ts'

writeFileSync('docs/transcript-policy.md', policyDocs())
console.log('docs/transcript-policy.md written')
