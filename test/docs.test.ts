import { silentLog } from '../src/base/log.ts'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { decodeFrame } from '../src/channel/webhook/codec.ts'
import { homePaths } from '../src/app/home.ts'
import { DEFAULTS } from '../src/config/defaults.ts'
import { checkConfig } from '../src/config/load.ts'
import { ERRORS } from '../src/core/errors.ts'
import { nodeFiles } from '../src/platform/node-files.ts'
import { watchLoop } from '../src/platform/loop-watch.ts'
import { observeRuntime } from '../src/platform/runtime-stats.ts'
import { configDocs } from './support/config-docs.ts'
import {
  allDocuments,
  deadLinks,
  fencesOf,
  helpOf,
  isThere,
  namedFiles,
  namedParts,
  readDocument,
  rooms,
  root,
  rowsOf,
  sectionOf,
  shownCommands,
  sourceFiles,
  type CommandHelp,
} from './support/documents.ts'
import { MemoryGateway } from './support/gateway.ts'

const docs = join(import.meta.dirname, '..', 'docs')

describe('the pages about errors', () => {
  const sections = errorPages().flatMap(({ page, text }) =>
    text
      .split(/^## /m)
      .slice(1)
      .map((section) => {
        const [code = '', ...lines] = section.split('\n')
        return { page, code: code.trim(), paragraph: lines.join('\n').trim() }
      }),
  )

  it('have exactly one paragraph for every code', () => {
    const documented = sections.map(({ code }) => code).toSorted()
    expect(documented).toEqual(Object.keys(ERRORS).toSorted())
  })

  it('say in each what happened and what to do', () => {
    const thin = sections.filter(({ paragraph }) => paragraph.length < 80 || paragraph.includes('\n\n'))
    expect(thin.map(({ page, code }) => `${page}: ${code}`)).toEqual([])
  })
})

describe('every page', () => {
  const documents = allDocuments()

  it('links to files that exist', () => {
    expect(documents.flatMap(deadLinks)).toEqual([])
  })

  it('shows commands and options that exist', async () => {
    const known = new Map<string, Promise<CommandHelp>>()
    const help = (words: readonly string[]): Promise<CommandHelp> => {
      const asked = known.get(words.join(' ')) ?? helpOf(words)
      known.set(words.join(' '), asked)
      return asked
    }
    const shown = documents.flatMap(shownCommands)
    expect(shown.length).toBeGreaterThan(20)
    const wrong: string[] = []
    for (const { page, words } of shown) {
      const path: string[] = []
      let at = await help(path)
      for (let next = words[path.length]; at.commands.length > 0; next = words[path.length]) {
        if (next === undefined || next.startsWith('-')) break
        if (!at.commands.includes(next)) {
          wrong.push(`${page}: clew ${words.join(' ')}`)
          break
        }
        path.push(next)
        at = await help(path)
      }
      const options = words.filter((word) => word.startsWith('--')).map((word) => word.split('=')[0] ?? '')
      wrong.push(...options.filter((option) => !at.text.includes(option)).map((option) => `${page}: ${option}`))
    }
    expect(wrong).toEqual([])
  })
})

describe('the two front pages', () => {
  const [english, chinese] = [readDocument('README.md').text, readDocument('README.zh-CN.md').text]
  const levels = (text: string): readonly string[] =>
    [...text.replaceAll(/^```[\s\S]*?^```/gmu, '').matchAll(/^#+(?= )/gmu)].map(([mark]) => mark)
  const targets = (text: string): readonly string[] =>
    [...text.matchAll(/\]\(([^)\s]+)\)/gu)]
      .map(([, target = '']) => target.replace('.zh-CN', ''))
      .toSorted((a, b) => a.localeCompare(b))

  it('have the same sections, code blocks, tables and links', () => {
    expect(levels(chinese)).toEqual(levels(english))
    expect(fencesOf(chinese).map(({ language }) => language)).toEqual(fencesOf(english).map(({ language }) => language))
    expect(tableSizes(chinese)).toEqual(tableSizes(english))
    expect(targets(chinese)).toEqual(targets(english))
  })

  it('name for each of the ten promises tests that exist', () => {
    const rows = rowsOf(sectionOf(english, '## Ten promises'))
    expect(rows.map(([name]) => name)).toEqual(Array.from({ length: 10 }, (_, index) => `P${index + 1}`))
    for (const [name, , proof = ''] of rows) {
      const claims = [...proof.matchAll(/\]\(([^)]+)\)†?((?:,? (?:and )?"[^"]+")*)/gu)]
      expect(claims.length, name).toBeGreaterThan(0)
      for (const [, file = '', titles = ''] of claims) {
        const source = readDocument(file).text
        for (const [, title = ''] of titles.matchAll(/"([^"]+)"/gu)) expect(source, `${name} ${file}`).toContain(title)
      }
    }
  })
})

function tableSizes(text: string): readonly number[] {
  return text
    .split(/\n(?!\|)/u)
    .map((block) => block.split('\n').filter((line) => line.startsWith('|')).length)
    .filter((size) => size > 0)
}

describe('the configuration page', () => {
  it('is what the schema says (npm run docs:config)', () => {
    expect(readDocument('docs/configuration.md').text).toBe(configDocs())
  })

  it('has an example beside it without a problem', async () => {
    const path = join(root, 'examples', 'bridge.json')
    const names = [...readFileSync(path, 'utf8').matchAll(/"\$([A-Z_]+)"/gu)].map(([, name = '']) => name)
    const env = Object.fromEntries(names.map((name) => [name, 'set-to-something-long']))
    expect(await checkConfig({ files: nodeFiles, path, env })).toEqual([])
  })
})

describe('the operations page', () => {
  const { text } = readDocument('docs/operations.md')

  it('has the limits of the code', () => {
    const limits = rowsOf(sectionOf(text, '## Limits')).map(([key = '', value]) => [bare(key), Number(value)])
    expect(Object.fromEntries(limits)).toEqual(DEFAULTS.limits)
  })

  it('has the metrics that are exposed', async () => {
    const gateway = await MemoryGateway.open()
    const stopRuntime = observeRuntime(gateway.app.metrics)
    const stopWatch = watchLoop(gateway.app.metrics, silentLog)
    const exposed = [...(await gateway.app.metrics.expose()).matchAll(/^# TYPE (\S+) (\S+)$/gmu)]
    stopRuntime()
    stopWatch()
    await gateway.stop()
    const listed = rowsOf(sectionOf(text, '## Metrics')).map(([name = '', type]) => [bare(name), type])
    expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(exposed.map(([, name, type]) => [name, type])))
  })

  it('names every file of the home', () => {
    const { home, ...paths } = homePaths('/home', {})
    const first = (path: string): string => path.slice(home.length + 1)
    const section = sectionOf(text, '## The home folder')
    expect(Object.values(paths).filter((path) => !section.includes(`\`${first(path)}`))).toEqual([])
  })
})

describe('the webhook page', () => {
  const { text } = readDocument('docs/protocol/webhook.md')

  it('shows frames that are understood, and JSON everywhere', () => {
    for (const { code } of fencesOf(text)) expect(() => JSON.parse(code) as unknown).not.toThrow()
    const inbound = fencesOf(sectionOf(text, '## Frames in'))
    expect(inbound.length).toBeGreaterThan(5)
    for (const { code } of inbound) expect(decodeFrame(code, 1_000_000).kind).not.toBe('echo')
  })

  it('has every event of the codec', () => {
    const source = readDocument('src/channel/webhook/codec.ts').text
    const sent = [...source.matchAll(/event: '([a-z_]+)'/gu)].map(([, name = '']) => name)
    const listed = rowsOf(sectionOf(text, '### event')).map(([name = '']) => bare(name))
    expect(listed.toSorted()).toEqual(sent.toSorted())
  })

  it('names codes that exist', () => {
    const codes = [...text.matchAll(/`([A-Z]+_[A-Z_]+)`/gu)].map(([, code = '']) => code)
    expect(codes.filter((code) => !Object.hasOwn(ERRORS, code))).toEqual([])
  })
})

describe('the journey of a message', () => {
  it('and the pages of the rooms name files that exist', () => {
    const pages = allDocuments().filter(({ path }) => path === 'docs/maintainers/flow.md' || path.startsWith('src'))
    const parts = sourceFiles()
    const missing = pages.flatMap((page) => [
      ...namedFiles(page).filter((path) => !isThere(path)),
      ...namedParts(page).filter((name) => !parts.has(name)),
    ])
    expect(missing).toEqual([])
  })

  it('leads through rooms that each say in fifteen lines what they are for', () => {
    const pages = rooms().map((room) => `src/${room}/README.md`)
    expect(pages.filter((page) => !isThere(page))).toEqual([])
    expect(pages.filter((page) => readDocument(page).text.trimEnd().split('\n').length > 15)).toEqual([])
  })
})

describe('the decisions', () => {
  const names = readdirSync(join(docs, 'decisions')).filter((name) => /^\d{4}-/u.test(name))

  it('have one number each and are listed', () => {
    const numbers = names.map((name) => name.slice(0, 4))
    expect(new Set(numbers).size).toBe(numbers.length)
    const { text } = readDocument('docs/decisions/README.md')
    expect(names.filter((name) => !text.includes(`(${name})`))).toEqual([])
  })

  it('give the reason for every run-time dependency', () => {
    const manifest = JSON.parse(readDocument('package.json').text) as Readonly<Record<string, object>>
    const wanted = Object.keys({ ...manifest['dependencies'], ...manifest['optionalDependencies'] })
    const rows = rowsOf(readDocument('docs/decisions/0011-run-time-dependencies.md').text)
    const given = rows.map(([name = '']) => bare(name.replace(' (optional)', '')))
    expect(given.toSorted()).toEqual(wanted.toSorted())
  })
})

function bare(cell: string): string {
  return cell.replaceAll('`', '')
}

function errorPages(): { readonly page: string; readonly text: string }[] {
  const folder = join(docs, 'errors')
  const parts = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.md')) : []
  return ['errors.md', ...parts.map((name) => `errors/${name}`)].map((page) => ({
    page,
    text: readFileSync(join(docs, page), 'utf8'),
  }))
}
