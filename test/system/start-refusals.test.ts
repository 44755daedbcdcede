import { spawn } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { build, MAIN } from '../support/built-gateway.ts'

let base: string
let home: string
beforeAll(build)
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'clew-refusals-'))
  home = join(base, 'home')
})
afterEach(() => rm(base, { recursive: true, force: true }))

/** Runs the program to its end. A refusal that never came would end the test by its own time limit. */
async function clew(...args: string[]): Promise<{ code: number | null; said: string }> {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, said }
}

describe('a start that is refused names the path, the code of the system and what to do', () => {
  it('with a folder in the place of a journal file', async () => {
    await mkdir(join(home, 'journal', '1.log'), { recursive: true })
    const { code, said } = await clew('start', '--home', home, '--port', '0')
    expect(code).toBe(1)
    expect(said).toContain(`${join(home, 'journal', '1.log')} (EISDIR); a folder stands where a file belongs`)
    expect(said).toContain('HOME_UNWRITABLE')
  })

  it('with a link to nothing in the place of the home, the journal or the lock', async () => {
    for (const name of ['.', 'journal', 'gateway.lock']) {
      const path = join(home, name)
      await mkdir(join(path, '..'), { recursive: true })
      await symlink(join(base, 'nothing', 'at', 'all'), path)
      const { code, said } = await clew('start', '--home', home, '--port', '0')
      expect(code).toBe(1)
      expect(said).toContain(path)
      expect(said).toMatch(/E(EXIST|NOENT)\).*link to nothing; remove it.*HOME_UNWRITABLE/u)
      await rm(path)
    }
  })

  it('in a file system that takes no folders', async () => {
    const { code, said } = await clew('start', '--home', '/proc/clew', '--port', '0')
    expect(code).toBe(1)
    expect(said).toContain('/proc/clew (ENOENT)')
  })
})

it('a home that others can write is reported by config check', async () => {
  await mkdir(home)
  await writeFile(join(home, 'bridge.json'), '{}')
  await chmod(home, 0o777)
  const { code, said } = await clew('config', 'check', '--home', home)
  expect(code).toBe(0)
  expect(said).toContain(`other users can write ${home} (mode 0777); take that away with chmod go-w`)
  await chmod(home, 0o700)
  expect((await clew('config', 'check', '--home', home)).said).not.toContain('other users')
})

it('temporary files that are planted as links are not written through', async () => {
  await mkdir(home)
  const target = join(base, 'precious')
  await writeFile(target, 'untouched')
  const planted = ['sessions.json.tmp', 'gateway.json.tmp', 'uid.tmp', 'gateway.json.tmp-0123456789abcdef']
  for (const name of planted) await symlink(target, join(home, name))
  const { code } = await clew('sessions', 'list', '--home', home)
  expect(code).toBe(0)
  const child = spawn(process.execPath, [MAIN, 'start', '--home', home, '--port', '0'])
  await new Promise((resolve) => child.stdout.once('data', resolve))
  child.kill('SIGTERM')
  await new Promise((resolve) => child.on('close', resolve))
  expect(await readFile(target, 'utf8')).toBe('untouched')
  expect((await readdir(home)).filter((name) => name.includes('.tmp-'))).toEqual([])
})
