import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { imageSizeOf, type ImageResizer } from '../../../src/base/images.ts'
import { noResizer } from '../../support/inert-ports.ts'
import type { Attachment } from '../../../src/core/inbound.ts'
import { NO_USAGE, type ImageBlock, type Message } from '../../../src/core/message.ts'
import { findMissingImages, withHistoryImages } from '../../../src/media/history-images.ts'
import { imageLimitsOf } from '../../../src/media/image-limits.ts'
import type { ImageSources } from '../../../src/media/load-images.ts'
import { loadPromptImages, mediaMarker, withPromptImages } from '../../../src/media/prompt-images.ts'
import { nodeFiles } from '../../../src/platform/node-files.ts'
import { createSharpResizer } from '../../../src/platform/sharp-resizer.ts'
import { never } from '../../support/tool-call.ts'

const limits = imageLimitsOf('anthropic-messages')

describe('pictures of a prompt', () => {
  let home: string
  let sources: ImageSources

  const picture = (side: number, format: 'png' | 'jpeg' | 'webp' | 'gif' | 'tiff' = 'png'): Promise<Buffer> =>
    sharp({ create: { width: side, height: Math.ceil(side / 2), channels: 3, background: '#36c' } })
      .toFormat(format)
      .toBuffer()

  beforeAll(async () => {
    home = await nodeFiles.realPath(await mkdtemp(join(tmpdir(), 'clew-images-')))
    const workspace = join(home, 'workspace')
    await mkdir(join(workspace, 'sub'), { recursive: true })
    await mkdir(join(home, 'media'))
    await writeFile(join(workspace, 'small.png'), await picture(40))
    await writeFile(join(workspace, 'large.png'), await picture(3000))
    await writeFile(join(workspace, 'photo.tiff'), await picture(40, 'tiff'))
    await writeFile(join(workspace, 'really-a-jpeg.png'), await picture(40, 'jpeg'))
    await writeFile(join(workspace, 'text.png'), 'not a picture at all')
    await writeFile(join(workspace, 'broken.png'), (await picture(3000)).subarray(0, 60))
    await writeFile(join(home, 'media', 'phone.jpg'), await picture(50, 'jpeg'))
    await writeFile(join(home, 'secret.png'), await picture(40))
    await symlink(join(home, 'secret.png'), join(workspace, 'link.png'))
    await symlink('small.png', join(workspace, 'inner-link.png'))
    await mkdir(join(workspace, 'folder.png'))
    sources = {
      files: nodeFiles,
      resizer: createSharpResizer(),
      roots: [workspace, join(home, 'media')],
      workspace,
      userHome: home,
    }
  })
  afterAll(() => rm(home, { recursive: true }))

  const load = (text: string, attachments: readonly Attachment[] = [], more: Partial<ImageSources> = {}) =>
    loadPromptImages({ text, attachments }, limits, { ...sources, ...more }, never)

  it('are loaded from the workspace and sent with the text', async () => {
    const found = await load('look at ./small.png')
    expect(found.images.map((image) => image.mimeType)).toEqual(['image/png'])
    expect(found.note).toBeUndefined()
    const content = withPromptImages('look at ./small.png', found)
    expect(content).toEqual([{ type: 'text', text: 'look at ./small.png' }, ...found.images])
    expect(withPromptImages('no picture', await load('no picture'))).toBe('no picture')
  })

  it('come attached first, then by name, each once', async () => {
    const path = join(home, 'media', 'phone.jpg')
    const attachment = { name: 'phone.jpg', mimeType: 'image/jpeg', path, bytes: 1 }
    const pdf = { name: 'a.pdf', mimeType: 'application/pdf', path: '/x.pdf', bytes: 1 }
    const found = await load(`./small.png ${path}`, [pdf, attachment])
    expect(found.images.map((image) => image.mimeType)).toEqual(['image/jpeg', 'image/png'])
    expect((await load(mediaMarker(attachment))).images).toHaveLength(1)
  })

  it('are what their content says, whatever their name', async () => {
    expect((await load('./really-a-jpeg.png')).images[0]?.mimeType).toBe('image/jpeg')
  })

  it('are resized to what the provider takes', async () => {
    const { images } = await load('./large.png ./photo.tiff')
    expect(images.map((image) => image.mimeType)).toEqual(['image/jpeg', 'image/jpeg'])
    const size = imageSizeOf(Buffer.from(images[0]?.data ?? '', 'base64'), 'image/jpeg')
    expect(size).toEqual({ width: 2000, height: 1000 })
  })

  it('are named to the model with the reason when they cannot be used', async () => {
    const found = await load(
      './gone.png ./text.png ./link.png ./folder.png ./broken.png /etc/x.png ~/secret.png C:\\a.png ../secret.png',
    )
    expect(found.images).toEqual([])
    expect(found.note).toBe(
      '[images not attached: gone.png (not found), text.png (not an image), link.png (outside the allowed folders), ' +
        'folder.png (not a file), broken.png (too large (60 bytes) and could not be resized), x.png (outside the allowed folders), ' +
        'secret.png (outside the allowed folders), a.png (a path of another system), ' +
        'secret.png (outside the allowed folders)]',
    )
    expect(withPromptImages('hi', found)).toBe(`hi\n\n${found.note}`)
    expect((await load('./inner-link.png')).images).toHaveLength(1)
  })

  it('without a decoder are used as they are when they fit, else left out', async () => {
    const found = await load('./small.png ./large.png ./photo.tiff', [], { resizer: noResizer })
    expect(found.images).toHaveLength(1)
    expect(found.skipped.map((skipped) => skipped.reason)).toEqual([
      expect.stringMatching(/^too large/),
      'image/tiff is not accepted by the model',
    ])
  })

  it('beyond the number a request may have are left out', async () => {
    const found = await loadPromptImages(
      { text: './small.png ./really-a-jpeg.png', attachments: [] },
      { ...limits, maxImages: 1 },
      sources,
      never,
    )
    expect([found.images.length, found.skipped]).toEqual([
      1,
      [{ name: './really-a-jpeg.png', reason: 'more than 1 images' }],
    ])
  })

  it('too large to be read at all are left out unread', async () => {
    const found = await load('./small.png', [], { maxFileBytes: 10 })
    expect(found.skipped).toEqual([{ name: './small.png', reason: 'larger than 10 bytes' }])
  })

  it('are not loaded for a model that takes none, which is said', async () => {
    const found = await loadPromptImages({ text: './small.png', attachments: [] }, undefined, sources, never)
    expect(found).toMatchObject({
      images: [],
      note: '[images not attached: small.png (this model does not accept images)]',
    })
  })

  it('stop loading when the turn is aborted', async () => {
    const resizer: ImageResizer = { resize: (_b, _t, signal) => Promise.reject(signal.reason as Error) }
    const turn = new AbortController()
    turn.abort(new Error('cancelled'))
    await expect(
      loadPromptImages({ text: './large.png', attachments: [] }, limits, { ...sources, resizer }, turn.signal),
    ).rejects.toThrow('cancelled')
  })

  it('with transparency stay PNG while that fits, and what fits nowhere is left out', async () => {
    const noise = await sharp({
      create: {
        width: 900,
        height: 900,
        channels: 4,
        background: '#0000',
        noise: { type: 'gaussian', mean: 128, sigma: 60 },
      },
    })
      .png()
      .toBuffer()
    const resizer = createSharpResizer()
    const roomy = await resizer.resize(noise, { maxSide: 400, maxBytes: 5_000_000 }, never)
    expect(roomy?.mediaType).toBe('image/png')
    const narrow = await resizer.resize(noise, { maxSide: 400, maxBytes: 40_000 }, never)
    expect(narrow?.mediaType).toBe('image/jpeg')
    expect(narrow?.bytes.length).toBeLessThanOrEqual(40_000)
    expect(await resizer.resize(noise, { maxSide: 400, maxBytes: 100 }, never)).toBeUndefined()
  })

  it('have limits for every API, strict ones for those nobody described', () => {
    expect(imageLimitsOf('google-generative-ai').mediaTypes).toContain('image/heic')
    expect(imageLimitsOf('something-new')).toMatchObject({ mediaTypes: ['image/png', 'image/jpeg'], maxImages: 8 })
  })

  describe('in earlier messages', () => {
    const image: ImageBlock = { type: 'image', data: 'AAAA', mimeType: 'image/png' }
    const user = (content: string | readonly (ImageBlock | { type: 'text'; text: string })[]): Message => ({
      role: 'user',
      content,
      timestamp: 1,
    })
    const answer: Message = {
      role: 'assistant',
      content: [{ type: 'text', text: 'ok' }],
      api: 'demo',
      provider: 'demo',
      model: 'demo',
      usage: NO_USAGE,
      stopReason: 'stop',
      timestamp: 1,
    }
    const toolResult: Message = {
      role: 'toolResult',
      toolCallId: 'c',
      toolName: 't',
      content: [image],
      isError: false,
      timestamp: 1,
    }

    it('are missed in the last three turns, each once, where the message does not hold them', () => {
      const messages = [
        user('one /a.png'),
        toolResult,
        answer,
        user('two /a.png /b.png'),
        answer,
        user('three /b.png'),
        user('still three /c.png'),
        answer,
        user([{ type: 'text', text: 'four /d.png' }, image]),
        user('still four /p.png'),
        answer,
      ]
      const missing = findMissingImages(messages, [{ raw: '/p.png', path: '/p.png' }])
      expect(missing.map(({ index, references }) => [index, references.map((r) => r.path)])).toEqual([
        [3, ['/a.png', '/b.png']],
        [6, ['/c.png']],
      ])
    })

    it('are loaded within the limit of the request, newest first', async () => {
      const messages = [user('./small.png'), answer, user('./inner-link.png'), answer]
      const show = (maxImages: number, promptImages = 0) =>
        withHistoryImages(
          messages,
          { accepted: { ...limits, maxImages }, promptReferences: [], promptImages },
          sources,
          never,
        )
      const counts = (shown: readonly Message[]): readonly number[] =>
        shown.map((message) =>
          'content' in message && typeof message.content !== 'string' ? message.content.length - 1 : 0,
        )
      expect(counts(await show(5))).toEqual([1, 0, 1, 0])
      expect(counts(await show(1))).toEqual([0, 0, 1, 0])
      expect(counts(await show(1, 1))).toEqual([0, 0, 0, 0])
    })

    it('are added to their own message and change no other', async () => {
      const messages = [user('./small.png'), answer, toolResult, answer]
      const shown = await withHistoryImages(
        messages,
        { accepted: limits, promptReferences: [], promptImages: 0 },
        sources,
        never,
      )
      expect(shown[0]).toMatchObject({ content: [{ type: 'text', text: './small.png' }, { mimeType: 'image/png' }] })
      expect(shown.slice(1)).toEqual(messages.slice(1))
      expect(messages[0]).toEqual(user('./small.png'))
    })

    it('are not looked for when the model takes none', async () => {
      const messages = [user('./small.png'), answer]
      const options = { accepted: undefined, promptReferences: [], promptImages: 0 }
      expect(await withHistoryImages(messages, options, sources, never)).toEqual(messages)
    })
  })
})
