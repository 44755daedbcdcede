import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { nodeCommands } from '../../../src/platform/node-commands.ts'
import { nodeFiles } from '../../../src/platform/node-files.ts'
import { systemClock, systemIds } from '../../../src/platform/system.ts'
import { createExecTool } from '../../../src/tool/exec/exec-tool.ts'
import { createFilesTool } from '../../../src/tool/files/files-tool.ts'
import type { ToolResult } from '../../../src/tool/tool.ts'
import { aCall, never, resultText } from '../../support/tool-call.ts'

let workspace: string

beforeEach(async () => {
  workspace = await mkdtemp(join(tmpdir(), 'clew-vcs-'))
})
afterEach(() => rm(workspace, { recursive: true }))

const files = (args: JsonObject, protectVersionControl = true): Promise<ToolResult> =>
  createFilesTool({ files: nodeFiles, ids: systemIds, workspace, protectVersionControl }).run(
    aCall('files', args),
    never,
  )

const git = (directory: string, ...args: string[]): Promise<ToolResult> =>
  createExecTool({ commands: nodeCommands, files: nodeFiles, clock: systemClock, workspace, allow: ['git'] }).run(
    aCall('exec', { program: 'git', arguments: args, directory }),
    never,
  )

const exists = (name: string): Promise<boolean> =>
  readFile(join(workspace, name)).then(
    () => true,
    () => false,
  )

describe('folders of version control, while programs may be run', () => {
  it.each([
    '.git/config',
    '.GIT/config',
    'repo/.Git/hooks/post-commit',
    '.git',
    '.git./config',
    '.git /config',
    'git~1/config',
    '.g\u200cit/config',
    '.git::$INDEX_ALLOCATION/config',
    '.hg/hgrc',
    '.SVN/entries',
  ])('cannot be written: %s', async (path) => {
    for (const args of [
      { action: 'write', path, text: 'x' },
      { action: 'append', path, text: 'x' },
    ]) {
      const result = await files(args)
      expect(result.isError).toBe(true)
      expect(resultText(result)).toContain('version control')
    }
  })

  it('cannot be moved onto, moved away, edited or deleted, nor reached through a link', async () => {
    await mkdir(join(workspace, '.git'))
    await writeFile(join(workspace, '.git', 'config'), 'a')
    await mkdir(join(workspace, 'evil'))
    await writeFile(join(workspace, 'evil', 'config'), 'b')
    await symlink('.git', join(workspace, 'innocent'))
    for (const args of [
      { action: 'move', path: 'evil', to: 'other/.git' },
      { action: 'move', path: 'evil/config', to: '.git/hooks/pre-commit' },
      { action: 'move', path: '.git', to: 'elsewhere' },
      { action: 'edit', path: '.git/config', find: 'a', text: 'b' },
      { action: 'delete', path: '.git/config' },
      { action: 'write', path: 'innocent/config', text: 'b' },
    ]) {
      expect(resultText(await files(args))).toContain('version control')
    }
    expect(await readFile(join(workspace, '.git', 'config'), 'utf8')).toBe('a')
  })

  it('can be read, and names that only look alike can be written', async () => {
    await mkdir(join(workspace, '.git'))
    await writeFile(join(workspace, '.git', 'HEAD'), 'ref: refs/heads/main\n')
    expect(resultText(await files({ action: 'read', path: '.git/HEAD' }))).toContain('refs/heads/main')
    for (const path of ['.gitignore', '.github/workflows/a.yml', 'git/config', 'x.git/config'])
      expect((await files({ action: 'write', path, text: 'x' })).isError).toBe(false)
  })

  it('can be written where no program can be run', async () => {
    expect((await files({ action: 'write', path: '.git/config', text: 'x' }, false)).isError).toBe(false)
  })
})

describe('git as the exec tool runs it', () => {
  const monitor = (file: string): string => `[core]\n\tfsmonitor = "touch ${file}; true"\n\thooksPath = hooks\n`

  it('starts no program that a repository names', async () => {
    await git('.', 'init', '-q', 'repo')
    const config = join(workspace, 'repo', '.git', 'config')
    await writeFile(config, (await readFile(config, 'utf8')) + monitor(join(workspace, 'ran')))
    expect((await git('repo', 'status', '--short')).isError).toBe(false)
    expect(await exists('ran')).toBe(false)
  })

  it('takes no folder of plain files for a repository', async () => {
    await git('.', 'init', '-q', '--bare', 'plain')
    await writeFile(
      join(workspace, 'plain', 'config'),
      `${monitor(join(workspace, 'ran'))}\tbare = false\n\tworktree = ..\n`,
    )
    expect(resultText(await git('plain', 'status'))).toContain('cannot use bare repository')
    expect(await exists('ran')).toBe(false)
  })
})
