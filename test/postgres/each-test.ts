import { relative } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { releaseSchemas } from '../support/virtual-schemas.ts'
import { FILES_ONLY_CASES } from './files-only.ts'

const ROOT = new URL('../..', import.meta.url).pathname

/** Leaves out what `files-only.ts` names, with the reason it gives. */
beforeEach(({ task, skip }) => {
  const cases = FILES_ONLY_CASES[relative(decodeURIComponent(ROOT), task.file.filepath)] ?? {}
  const name = fullName(task)
  const found = Object.keys(cases).find((beginning) => name.startsWith(beginning))
  if (found !== undefined) skip(cases[found])
})

// Registered before the hooks of the test's own file, so that it runs behind them.
afterEach(releaseSchemas)

function fullName({ name, suite }: { readonly name: string; readonly suite?: Suite }): string {
  return suite === undefined ? name : `${fullName(suite)} > ${name}`
}

interface Suite {
  readonly name: string
  readonly suite?: Suite
}
