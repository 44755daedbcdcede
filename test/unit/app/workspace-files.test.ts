import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { readWorkspaceFiles } from '../../../src/app/workspace-files.ts'
import { silentLog } from '../../../src/base/log.ts'
import { nodeFiles } from '../../../src/platform/node-files.ts'

let root: string

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'clew-workspace-'))
  await mkdir(join(root, 'workspace', 'skills', 'out'), { recursive: true })
  await writeFile(join(root, 'secret.md'), 'a secret')
})
afterEach(() => rm(root, { recursive: true }))

const read = (skills = true): Promise<string> =>
  readWorkspaceFiles({ files: nodeFiles, log: silentLog, workspace: join(root, 'workspace') }, { skills })

it('follows no link out of the workspace', async () => {
  await symlink(join(root, 'secret.md'), join(root, 'workspace', 'AGENTS.md'))
  await symlink(join(root, 'secret.md'), join(root, 'workspace', 'skills', 'out', 'SKILL.md'))
  await writeFile(join(root, 'workspace', 'USER.md'), 'Ada')
  expect(await read()).toBe('<file name="USER.md">\nAda\n</file>')
})

it('leaves out what is not text, and skills where nothing could read them', async () => {
  await writeFile(join(root, 'workspace', 'AGENTS.md'), Buffer.from([0, 255, 1]))
  await writeFile(join(root, 'workspace', 'skills', 'out', 'SKILL.md'), '# Bake\n')
  expect(await read()).toBe('<skills>\nskills/out/SKILL.md: Bake\n</skills>')
  expect(await read(false)).toBe('')
})

it('has nothing to say without a workspace', async () => {
  await rm(join(root, 'workspace'), { recursive: true })
  expect(await read()).toBe('')
})
