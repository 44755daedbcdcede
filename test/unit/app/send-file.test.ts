import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createSendFile } from '../../../src/app/tools.ts'
import type { Platform } from '../../../src/app/platform.ts'
import type { Files } from '../../../src/base/files.ts'
import { nodeFiles } from '../../../src/platform/node-files.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { createFilesTool } from '../../../src/tool/files/files-tool.ts'
import type { ToolResult } from '../../../src/tool/tool.ts'
import { aCall, never, resultText } from '../../support/tool-call.ts'

let home: string

beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'clew-send-')))
  await mkdir(join(home, 'workspace'))
  await writeFile(join(home, 'workspace', 'report.txt'), 'for you')
  await writeFile(join(home, 'bridge.json'), 'a key')
})
afterEach(() => rm(home, { recursive: true }))

/** `beforeOpen` runs between the look at a file and its opening. */
function send(beforeOpen: () => Promise<void> = async () => undefined): Promise<ToolResult> {
  const files: Files = {
    ...nodeFiles,
    async open(path, mode, permissions) {
      if (path.endsWith('report.txt') && mode === 'read') await beforeOpen()
      return nodeFiles.open(path, mode, permissions)
    },
  }
  const ids = new SeededIds()
  const keep = createSendFile({ files, ids } as unknown as Platform, {
    directory: join(home, 'media'),
    maxBytes: 1_000,
  })
  const tool = createFilesTool({ files, ids, workspace: join(home, 'workspace'), send: keep })
  return tool.run({ ...aCall('files', { action: 'send', path: 'report.txt' }), owner: 'ann' }, never)
}

it('gives the user a copy of a file', async () => {
  expect(resultText(await send())).toBe('report.txt goes with your answer.')
})

it('sends nothing from outside the workspace, also when a link takes the place of the file meanwhile', async () => {
  const result = await send(async () => {
    await rm(join(home, 'workspace', 'report.txt'))
    await symlink(join(home, 'bridge.json'), join(home, 'workspace', 'report.txt'))
  })
  expect(resultText(result)).toBe('Not done: the file changed while it was opened.')
  expect(await nodeFiles.list(join(home, 'media'))).toEqual([])
})
