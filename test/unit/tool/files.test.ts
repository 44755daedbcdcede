import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { nodeFiles } from '../../../src/platform/node-files.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { createFilesTool } from '../../../src/tool/files/files-tool.ts'
import type { ToolResult } from '../../../src/tool/tool.ts'
import { aCall, never, resultText } from '../../support/tool-call.ts'

const workspace = '/home/workspace'

function open(disk = new MemoryFiles(), limits = {}) {
  const tool = createFilesTool({ files: disk, ids: new SeededIds(), workspace, limits })
  const run = (args: JsonObject): Promise<ToolResult> => tool.run(aCall('files', args), never)
  return { disk, tool, run, text: async (args: JsonObject) => resultText(await run(args)) }
}

describe('the files tool', () => {
  it('writes, reads, appends, edits, moves and deletes, and tells what it changed', async () => {
    const { run, text, disk } = open()
    const wrote = await run({ action: 'write', path: 'notes/a.txt', text: 'eins\n' })
    expect(wrote).toMatchObject({ isError: false, details: { filesWritten: ['notes/a.txt'] } })
    expect(resultText(wrote)).toBe('Wrote notes/a.txt (5 bytes).')
    await run({ action: 'append', path: './notes/../notes/a.txt', text: 'zwei\n' })
    await run({ action: 'edit', path: 'notes/a.txt', find: 'eins', text: 'one' })
    expect(await text({ action: 'read', path: 'notes/a.txt' })).toBe('one\nzwei\n')
    const moved = await run({ action: 'move', path: 'notes/a.txt', to: 'b.txt' })
    expect(moved.details).toEqual({ filesWritten: ['b.txt'], filesRemoved: ['notes/a.txt'] })
    expect(await text({ action: 'list', path: '.' })).toBe('b.txt (9 bytes)\nnotes/')
    expect((await run({ action: 'delete', path: 'b.txt' })).details).toEqual({ filesRemoved: ['b.txt'] })
    expect((await run({ action: 'delete', path: 'notes' })).isError).toBe(false)
    expect(await text({ action: 'list', path: '.' })).toBe('[the folder is empty]')
    expect(disk.text(`${workspace}/b.txt`)).toBeUndefined()
  })

  it('reads long files in pieces of whole lines and says how to go on', async () => {
    const { run, text } = open(new MemoryFiles(), { maxReadChars: 20 })
    await run({ action: 'write', path: 'a', text: ['line 1', 'line 2', 'line 3', 'line 4'].join('\n') })
    expect(await text({ action: 'read', path: 'a' })).toBe('line 1\nline 2\n[lines 1-2 of 4; continue with offset 3]')
    expect(await text({ action: 'read', path: 'a', offset: 3 })).toBe('line 3\nline 4\n[lines 3-4 of 4]')
    expect(await text({ action: 'read', path: 'a', offset: 2, limit: 1 })).toContain('[lines 2-2 of 4; continue')
    expect(await text({ action: 'read', path: 'a', offset: 9 })).toBe('[the file has 4 lines]')
  })

  it.each([
    [{ action: 'read', path: 'gone' }, 'Not done: "gone" does not exist.'],
    [{ action: 'read', path: '.' }, 'Not done: "." is a folder; use the action "list".'],
    [{ action: 'list', path: 'a' }, 'Not done: "a" is a file; use the action "read".'],
    [{ action: 'read', path: 'a/b' }, 'Not done: "a" is not a folder.'],
    [{ action: 'write', path: '.', text: '' }, 'Not done: "." is a folder.'],
    [{ action: 'write', path: 'b' }, 'Not done: the action "write" needs "text".'],
    [{ action: 'write', path: 'b', text: 'x'.repeat(101) }, 'Not done: the text has 101 bytes; a file may have 100.'],
    [{ action: 'edit', path: 'a', find: 'nothing', text: '' }, 'Not done: the text to replace does not occur in "a".'],
    [
      { action: 'edit', path: 'a', find: 'a', text: '' },
      'Not done: the text to replace occurs more than once in "a"; include more of its surroundings.',
    ],
    [{ action: 'delete', path: '.' }, 'Not done: the workspace itself cannot be deleted.'],
    [{ action: 'delete', path: 'full' }, 'Not done: the folder "full" is not empty.'],
    [{ action: 'move', path: 'full', to: 'full/x' }, 'Not done: a folder cannot be moved into itself.'],
    [{ action: 'move', path: 'a', to: 'full/b' }, 'Not done: "full/b" exists already.'],
    [{ action: 'read', path: 'binary' }, 'Not done: "binary" is not a text file (3 bytes).'],
    [{ action: 'read', path: 'long' }, 'Not done: "long" has 101 bytes; at most 100 can be read.'],
    [{ action: 'append', path: 'a', text: 'x'.repeat(95) }, 'Not done: the text has 101 bytes; a file may have 100.'],
    [{ action: 'list', path: 'gone' }, 'Not done: "gone" does not exist.'],
    [{ action: 'move', path: 'gone', to: 'x' }, 'Not done: "gone" does not exist.'],
    [{ action: 'move', path: '.', to: 'x' }, 'Not done: the workspace itself cannot be moved.'],
    [{ action: 'read', path: 'x'.repeat(1001) }, 'Not done: the path has more than 1000 characters.'],
    [{ action: 'read', path: '汉'.repeat(90) }, 'Not done: a name in the path is too long.'],
    [{ action: 'read', path: '~/a' }, 'Not done: "~" is not available; name files relative to the workspace.'],
    [{ action: 'read', path: 'latin1' }, 'Not done: "latin1" is not a text file (2 bytes).'],
  ])('refuses %j and says why', async (args, message) => {
    const disk = new MemoryFiles()
    disk.plant(`${workspace}/a`, 'banana')
    disk.plant(`${workspace}/full/b`, 'x')
    disk.plant(`${workspace}/long`, 'x'.repeat(101))
    disk.plant(`${workspace}/binary`, new Uint8Array([1, 0, 2]))
    disk.plant(`${workspace}/latin1`, new Uint8Array([0xe9, 0x20]))
    const result = await open(disk, { maxFileBytes: 100 }).run(args)
    expect(result.isError).toBe(true)
    expect(resultText(result)).toBe(message)
  })

  it('leaves the old file whole when the disk is full', async () => {
    const { run, disk } = open()
    await run({ action: 'write', path: 'a', text: 'old' })
    disk.limitSpace(1)
    const result = await run({ action: 'write', path: 'a', text: 'new and longer' })
    expect(resultText(result)).toBe('Not done: the disk is full.')
    expect(disk.text(`${workspace}/a`)).toBe('old')
    expect(await disk.list(workspace)).toEqual(['a'])
  })

  it('reads side by side and may repeat what a crash interrupted, where that is harmless', () => {
    const { tool } = open()
    expect(tool.traitsOf?.({ action: 'read' })).toEqual({ parallel: true, repeatable: true })
    expect(tool.traitsOf?.({ action: 'write' })).toEqual({ parallel: false, repeatable: true })
    expect(tool.traitsOf?.({ action: 'append' })).toEqual({ parallel: false, repeatable: false })
  })
})

describe('the files tool on a real disk', () => {
  let home: string
  let inside: string

  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'clew-files-'))
    inside = join(home, 'workspace')
    await mkdir(inside)
    await writeFile(join(home, 'secret'), 'secret')
  })
  afterEach(() => rm(home, { recursive: true }))

  const run = (args: JsonObject): Promise<ToolResult> =>
    createFilesTool({ files: nodeFiles, ids: new SeededIds(), workspace: inside }).run(aCall('files', args), never)

  it('does not follow links out of the workspace, at any place of the path', async () => {
    await symlink(join(home, 'secret'), join(inside, 'file-link'))
    await symlink(home, join(inside, 'folder-link'))
    await symlink('../..', join(inside, 'up'))
    await mkdir(join(inside, 'sub'))
    await symlink('../../secret', join(inside, 'sub', 'relative-link'))
    const paths = [
      'file-link',
      'folder-link',
      'folder-link/secret',
      'folder-link/new/file',
      'up/x',
      'sub/relative-link',
    ]
    for (const path of paths) {
      for (const action of ['read', 'list', 'write', 'append', 'edit', 'delete']) {
        const result = await run({ action, path, text: 'x', find: 'secret' })
        expect([path, action, result.isError]).toEqual([path, action, true])
        expect(resultText(result)).not.toBe('secret')
      }
      expect((await run({ action: 'move', path, to: 'stolen' })).isError).toBe(true)
    }
    await run({ action: 'write', path: 'own', text: 'x' })
    expect((await run({ action: 'move', path: 'own', to: 'folder-link/own' })).isError).toBe(true)
    expect(await readFile(join(home, 'secret'), 'utf8')).toBe('secret')
  })

  it('does not write through a link to nowhere, which would create its target', async () => {
    await symlink(join(home, 'not-there'), join(inside, 'dangling'))
    for (const action of ['write', 'append', 'read']) {
      const result = await run({ action, path: 'dangling', text: 'x' })
      expect(resultText(result)).toBe('Not done: "dangling" goes through a broken link.')
    }
    expect(await nodeFiles.stat(join(home, 'not-there'))).toBeUndefined()
  })

  it('follows links that stay inside, and writes to what they name', async () => {
    await writeFile(join(inside, 'target'), 'old')
    await symlink('target', join(inside, 'link'))
    expect(resultText(await run({ action: 'read', path: 'link' }))).toBe('old')
    await run({ action: 'write', path: 'link', text: 'new' })
    expect(await readFile(join(inside, 'target'), 'utf8')).toBe('new')
    expect(resultText(await run({ action: 'list', path: '.' }))).toBe('link (link)\ntarget (3 bytes)')
    for (const args of [
      { action: 'delete', path: 'link' },
      { action: 'move', path: 'link', to: 'x' },
    ]) {
      expect(resultText(await run(args))).toBe('Not done: "link" is or goes through a link; name the file itself.')
    }
  })

  it('does not open sockets and devices', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(join(inside, 'socket'), resolve))
    try {
      const result = await run({ action: 'read', path: 'socket' })
      expect(resultText(result)).toBe('Not done: "socket" is neither a file nor a folder.')
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
  })

  it('works in a workspace that is itself reached through a link', async () => {
    await symlink(inside, join(home, 'ws'))
    const tool = createFilesTool({ files: nodeFiles, ids: new SeededIds(), workspace: join(home, 'ws') })
    const result = await tool.run(aCall('files', { action: 'write', path: 'a', text: 'x' }), never)
    expect(result.isError).toBe(false)
    expect(await readFile(join(inside, 'a'), 'utf8')).toBe('x')
  })
})
