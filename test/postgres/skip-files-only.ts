import { relative } from 'node:path'
import { beforeEach } from 'vitest'
import { FILES_ONLY_CASES } from './files-only.ts'

const ROOT = new URL('../..', import.meta.url).pathname

/** Leaves out what `files-only.ts` names, with the reason it gives. */
beforeEach(({ task, skip }) => {
  const cases = FILES_ONLY_CASES[relative(decodeURIComponent(ROOT), task.file.filepath)] ?? {}
  const name = fullName(task)
  const found = Object.keys(cases).find((beginning) => name.startsWith(beginning))
  if (found !== undefined) skip(cases[found])
})

function fullName({ name, suite }: { readonly name: string; readonly suite?: Suite }): string {
  return suite === undefined ? name : `${fullName(suite)} > ${name}`
}

interface Suite {
  readonly name: string
  readonly suite?: Suite
}
