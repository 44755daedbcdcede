import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { removeUnfinished, removeUnfinishedBeside, writeAtomically } from '../../../src/base/atomic-write.ts'
import type { Files } from '../../../src/base/files.ts'
import { nodeFiles } from '../../../src/platform/node-files.ts'
import { systemIds } from '../../../src/platform/system.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'

const HOUR = 3_600_000
const LEFT = 'a.json.tmp-0123456789abcdef'

/** Notes under which names, and how, files were opened. */
function watched(files: Files): { readonly files: Files; readonly opened: string[] } {
  const opened: string[] = []
  const open: Files['open'] = (path, mode, permissions) => {
    opened.push(`${mode} ${path}`)
    return files.open(path, mode, permissions)
  }
  return {
    files: new Proxy(files, {
      get: (target, name: keyof Files) => (name === 'open' ? open : target[name].bind(target)),
    }),
    opened,
  }
}

async function text(files: Files, path: string): Promise<string> {
  const handle = await files.open(path, 'read')
  return new TextDecoder().decode(await handle.read(0, handle.stat().size))
}

describe('an atomic write', () => {
  it('creates its file exclusively under a name that is another one every time', async () => {
    const { files, opened } = watched(new MemoryFiles())
    for (const content of ['one', 'two']) await writeAtomically({ files, ids: systemIds }, '/a.json', content)
    expect(await text(files, '/a.json')).toBe('two')
    const created = opened.filter((line) => line.startsWith('create '))
    expect(new Set(created).size).toBe(2)
    for (const line of created) expect(line).toMatch(/^create \/a\.json\.tmp-[0-9a-f]{16}$/u)
  })

  it('does not write through a link at its name, even one that was guessed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'clew-atomic-'))
    afterEach(() => rm(folder, { recursive: true, force: true }))
    await writeFile(join(folder, 'target'), 'untouched')
    const guessed = new SeededIds().hex(16)
    await symlink(join(folder, 'target'), join(folder, `a.json.tmp-${guessed}`))
    const write = writeAtomically({ files: nodeFiles, ids: new SeededIds() }, join(folder, 'a.json'), 'new')
    await expect(write).rejects.toMatchObject({ code: 'EEXIST' })
    expect(await readFile(join(folder, 'target'), 'utf8')).toBe('untouched')
  })

  it('leaves the old content and nothing else when writing, or what comes before the rename, fails', async () => {
    const files = new MemoryFiles()
    const deps = { files, ids: systemIds }
    await writeAtomically(deps, '/a.json', 'old')
    const fail = (): never => {
      throw new Error('no')
    }
    await expect(writeAtomically(deps, '/a.json', async () => fail())).rejects.toThrow('no')
    await expect(writeAtomically(deps, '/a.json', 'new', { beforeRename: fail })).rejects.toThrow('no')
    expect(await files.list('/')).toEqual(['a.json'])
    expect(await text(files, '/a.json')).toBe('old')
  })

  it('fits into the 255 bytes of a name, however long that of the file is', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'clew-atomic-'))
    afterEach(() => rm(folder, { recursive: true, force: true }))
    for (const name of ['x'.repeat(255), '名'.repeat(85)]) {
      await writeAtomically({ files: nodeFiles, ids: systemIds }, join(folder, name), 'long')
      expect(await readFile(join(folder, name), 'utf8')).toBe('long')
    }
    expect(await readdir(folder)).toHaveLength(2)
  })
})

describe('what a crash left of atomic writes', () => {
  it('is removed, and nothing that only looks like it', async () => {
    const files = new MemoryFiles()
    const others = ['a.json', 'a.json.tmp', 'notes.tmp-1', 'b.tmp-0123456789abcdeg', 'c.tmp-0123456789abcdef.md']
    for (const name of [...others, LEFT, '.tmp-fedcba9876543210']) files.plant(`/home/${name}`, 'x')
    expect(await removeUnfinished(files, { directory: '/home' })).toBe(2)
    expect(await files.list('/home')).toEqual(others.toSorted())
  })

  it('is removed of one file alone where that is asked for', async () => {
    const files = new MemoryFiles()
    for (const name of [LEFT, 'b.json.tmp-0123456789abcdef']) files.plant(`/home/${name}`, 'x')
    await removeUnfinished(files, { directory: '/home', name: 'a.json' })
    expect(await files.list('/home')).toEqual(['b.json.tmp-0123456789abcdef'])
  })

  it('stays for an hour where another process may still be writing it', async () => {
    let now = 0
    const files = new MemoryFiles({ now: () => now })
    const deps = { files, ids: new SeededIds() }
    files.plant(`/home/${LEFT}`, 'x')
    now = HOUR
    await writeAtomically(deps, '/home/b', 'x')
    await removeUnfinishedBeside(files, '/home/b')
    expect(await files.list('/home')).toContain(LEFT)
    now = HOUR + 1
    await writeAtomically(deps, '/home/b', 'x')
    await removeUnfinishedBeside(files, '/home/b')
    expect(await files.list('/home')).toEqual(['b'])
  })
})
