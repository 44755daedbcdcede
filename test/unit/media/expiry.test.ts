import { describe, expect, test } from 'vitest'
import { deferred } from '../../../src/base/async.ts'
import { MediaExpiry, type MediaLimits } from '../../../src/media/expiry.ts'
import { foldersIn, Mentions } from '../../../src/media/mentions.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { recordingLog } from '../../support/xiaoyi-world.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const MEDIA = '/home/media'
const never = new AbortController().signal

/** A folder name of the kind media get. */
const folder = (digit: string): string => digit.repeat(32)

class Scene {
  readonly clock = new ManualClock(1_000 * DAY)
  readonly files = new MemoryFiles({ now: () => this.clock.now() })
  readonly logs: string[] = []
  needed: (folders: readonly string[], signal: AbortSignal) => Promise<ReadonlySet<string>> = async () => new Set()

  open(limits: Partial<MediaLimits> = {}): MediaExpiry {
    const expiry = new MediaExpiry({
      files: this.files,
      clock: this.clock,
      log: recordingLog(this.logs),
      directory: MEDIA,
      limits: { maxAgeMs: 7 * DAY, maxBytes: 1_000, ...limits },
      stillNeeded: (folders, signal) => this.needed(folders, signal),
    })
    expiry.start()
    return expiry
  }

  async store(name: string, bytes = 100): Promise<void> {
    await this.files.makeDirectory(`${MEDIA}/${name}`)
    const handle = await this.files.open(`${MEDIA}/${name}/file.bin`, 'create')
    await handle.write(new Uint8Array(bytes))
    await handle.close()
  }

  left(): Promise<readonly string[]> {
    return this.files.list(MEDIA)
  }
}

describe('media', () => {
  test('are removed when they are old, whole, and nothing younger with them', async () => {
    const scene = new Scene()
    await scene.store(folder('a'))
    const expiry = scene.open()
    await scene.clock.advance(6 * DAY)
    await scene.store(folder('b'))
    expect(await scene.left()).toEqual([folder('a'), folder('b')])
    await scene.clock.advance(DAY + HOUR)
    expect(await scene.left()).toEqual([folder('b')])
    expect(scene.files.text(`${MEDIA}/${folder('a')}/file.bin`)).toBeUndefined()
    await expiry.close()
  })

  test('are removed oldest first when they are too many bytes, and no more than that', async () => {
    const scene = new Scene()
    for (const name of ['c', 'a', 'b']) {
      await scene.store(folder(name), 400)
      await scene.clock.advance(HOUR)
    }
    const expiry = scene.open()
    await scene.clock.advance(HOUR)
    expect(await scene.left()).toEqual([folder('a'), folder('b')])
    await expiry.close()
  })

  test('stay when something refers to them, however old, and then the next oldest make room', async () => {
    const scene = new Scene()
    for (const name of ['a', 'b', 'c']) {
      await scene.store(folder(name), 600)
      await scene.clock.advance(HOUR)
    }
    scene.needed = async () => new Set([folder('a')])
    const expiry = scene.open()
    await scene.clock.advance(HOUR)
    expect(await scene.left()).toEqual([folder('a')])
    await scene.clock.advance(30 * DAY)
    expect(await scene.left()).toEqual([folder('a')])
    await expiry.close()
  })

  test('that take too much room and are all referred to are reported, and stay', async () => {
    const scene = new Scene()
    await scene.store(folder('a'), 2_000)
    scene.needed = async (folders) => new Set(folders)
    const expiry = scene.open()
    await scene.clock.advance(2 * HOUR)
    expect(await scene.left()).toEqual([folder('a')])
    expect(scene.logs.join('\n')).toContain('exceed their limit')
    await expiry.close()
  })

  test('of a message that is only arriving are safe from the limit on bytes', async () => {
    const scene = new Scene()
    const expiry = scene.open({ maxBytes: 0 })
    await scene.clock.advance(30_000)
    await scene.store(folder('a'))
    await scene.clock.advance(HOUR)
    expect(await scene.left()).toEqual([folder('a')])
    await scene.clock.advance(2 * HOUR)
    expect(await scene.left()).toEqual([])
    await expiry.close()
  })

  test('have a folder in which other things are left alone', async () => {
    const scene = new Scene()
    await scene.store('notes of the operator')
    await scene.files.makeDirectory(MEDIA)
    scene.files.plant(`${MEDIA}/${folder('f')}`, 'a file, not a folder')
    const expiry = scene.open({ maxBytes: 0 })
    await scene.clock.advance(30 * DAY)
    expect(await scene.left()).toEqual([folder('f'), 'notes of the operator'])
    await expiry.close()
  })

  test('are nobody’s business any more after the close, which waits for what is under way', async () => {
    const scene = new Scene()
    await scene.store(folder('a'))
    await scene.clock.advance(8 * DAY)
    const asked = deferred()
    scene.needed = async (_folders, signal) => {
      await asked.promise
      signal.throwIfAborted()
      return new Set()
    }
    const expiry = scene.open()
    await scene.clock.advance(HOUR)
    let closed = false
    const closing = expiry.close().then(() => (closed = true))
    await settle()
    expect(closed).toBe(false)
    asked.resolve()
    await closing
    expect(await scene.left()).toEqual([folder('a')])
    expect(scene.clock.pending).toBe(0)
  })

  test('that cannot be removed are tried again', async () => {
    const scene = new Scene()
    await scene.store(folder('a'))
    await scene.clock.advance(8 * DAY)
    scene.files.injectFault(scene.files.operations, 'EACCES')
    const expiry = scene.open()
    await scene.clock.advance(120_000)
    expect(await scene.left()).toEqual([folder('a')])
    expect(scene.logs.join('\n')).toContain('EACCES')
    await scene.clock.advance(HOUR)
    expect(await scene.left()).toEqual([])
    await expiry.close()
  })
})

describe('mentions', () => {
  const line = (path: string): string => `${JSON.stringify({ text: `[media attached: ${path} (image/png)]` })}\n`

  test('are paths as any program writes them', () => {
    const [a, b, c] = [folder('a'), folder('b'), folder('c')]
    expect(foldersIn(`/h/media/${a}/x.png "C:\\\\h\\\\media\\\\${b}\\\\y" "\\/h\\/media\\/${c}\\/z"`)).toEqual([
      a,
      b,
      c,
    ])
    expect(foldersIn(`sess_${a} media/short`)).toEqual([])
  })

  test('are found in transcripts, archived ones and backups, at every place of a file', async () => {
    const files = new MemoryFiles()
    const inBlock = 256 * 1024
    for (const [index, at] of [0, inBlock - 60, inBlock - 20, inBlock - 1, inBlock, 3 * inBlock + 7].entries()) {
      const name = index.toString(16).repeat(32)
      files.plant('/sessions/a.jsonl', `${' '.repeat(at)}${line(`/home/media/${name}/x.png`)}`)
      const mentions = new Mentions({ files, directory: '/sessions' })
      expect([...(await mentions.of([name, folder('f')], never))]).toEqual([name])
    }
    files.plant('/sessions/b.jsonl.archived-5', line(`/home/media/${folder('b')}/x`))
    files.plant('/sessions/c.jsonl.bak-1', line(`/home/media/${folder('c')}/x`))
    files.plant('/sessions/d.jsonl.lock', line(`/home/media/${folder('d')}/x`))
    const mentions = new Mentions({ files, directory: '/sessions' })
    const found = await mentions.of([folder('b'), folder('c'), folder('d')], never)
    expect([...found]).toEqual([folder('b'), folder('c')])
  })

  test('end with the transcript', async () => {
    const files = new MemoryFiles()
    files.plant('/sessions/a.jsonl', line(`/home/media/${folder('a')}/x`))
    const mentions = new Mentions({ files, directory: '/sessions' })
    expect((await mentions.of([folder('a')], never)).size).toBe(1)
    await files.remove('/sessions/a.jsonl')
    expect((await mentions.of([folder('a')], never)).size).toBe(0)
  })
})
