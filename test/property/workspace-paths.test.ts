import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { nodeFiles } from '../../src/platform/node-files.ts'
import { isInside, PathRefused, resolveInWorkspace, toSegments } from '../../src/tool/files/workspace.ts'

const RUNS = { seed: 20261115, numRuns: 2000 }

const piece = fc.constantFrom(
  '..',
  '.',
  '',
  'a',
  'b',
  'link-out',
  'link-in',
  'link-root',
  'dangling',
  '~',
  '...',
  '..a',
  ' ',
  '%2e%2e',
  '\\',
  '..\\..',
  'C:',
  '\0',
  '．．',
)
const path = fc
  .tuple(fc.constantFrom('', '', '', '/', './', '//', '~/', 'C:/', 'file:///'), fc.array(piece, { maxLength: 8 }))
  .map(([start, pieces]) => start + pieces.join('/'))

describe('paths a model may write', () => {
  let home: string
  let workspace: string

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'clew-paths-'))
    workspace = join(home, 'workspace')
    await mkdir(join(workspace, 'a', 'b'), { recursive: true })
    await writeFile(join(home, 'a'), 'outside')
    await writeFile(join(workspace, 'b'), 'inside')
    await symlink(home, join(workspace, 'link-out'))
    await symlink('/', join(workspace, 'link-root'))
    await symlink('a', join(workspace, 'link-in'))
    await symlink('../nothing', join(workspace, 'dangling'))
    await symlink('../..', join(workspace, 'a', 'link-out'))
  })
  afterAll(() => rm(home, { recursive: true }))

  it('never lead out of the workspace by their letters', () => {
    fc.assert(
      fc.property(path, (text) => {
        const segments = unlessRefusedNow(() => toSegments(text))
        if (segments === undefined) return true
        const meant = posix.normalize(posix.join('/w', text)).replace(/(?<=.)\/$/, '')
        return isInside('/w', meant) && meant === posix.join('/w', ...segments)
      }),
      RUNS,
    )
  })

  it('never lead out of the workspace through the disk', async () => {
    await fc.assert(
      fc.asyncProperty(path, async (text) => {
        const found = await unlessRefused(() => resolveInWorkspace(nodeFiles, workspace, text))
        if (found === undefined) return true
        const isReal = found.stat === undefined || (await nodeFiles.realPath(found.path)) === found.path
        return isReal && isInside(workspace, found.path)
      }),
      { ...RUNS, numRuns: 500 },
    )
  })
})

async function unlessRefused<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof PathRefused) return undefined
    throw error
  }
}

function unlessRefusedNow<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof PathRefused) return undefined
    throw error
  }
}
