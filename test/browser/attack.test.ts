import type { Browser, Page, Route } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { BuiltGateway, newHome, removeHome } from '../support/built-gateway.ts'
import { complaintsOf, launchBrowser, newPage, PATIENCE, untilStill } from './browser.ts'

const KEY = 'attacked'
const RIGHT_TO_LEFT = '\u202e\u2066txt.exe\u2069'
const ATTACKS: readonly string[] = [
  '<img src=x onerror="window.hurt=1">',
  '<script>window.hurt=1</script>',
  '</textarea></title></style><svg onload="window.hurt=1">',
  '[press](javascript:window.hurt=1) ![pic](https://elsewhere.example/x.png) <javascript:window.hurt=1>',
  '[data](data:text/html,<script>window.hurt=1</script>) [x](vbscript:window.hurt=1)',
  `lone \ud800 surrogate, ${RIGHT_TO_LEFT}, \u0000 zero, "quotes" 'and' \`ticks\``,
  `| a | b |\n|---|---|\n${'| 1 | 2 |\n'.repeat(200)}`,
  '```html\n<script>window.hurt=1</script>\n```\n{{constructor.constructor("window.hurt=1")()}} ${window.hurt=1}',
]

/** Fields whose values steer the page rather than being shown: with others it would show nothing at all. */
const STEERING = new Set([
  'role',
  'type',
  'state',
  'id',
  'at',
  'startedAt',
  'updatedAt',
  'timestamp',
  'before',
  'nextCursor',
  'stepId',
  'run',
  'hash',
  'level',
  'origin',
  'entry',
  'callId',
  'expiresAt',
  'mimeType',
  'session',
  'circuit',
])

let browser: Browser
let home: string
let gateway: BuiltGateway

beforeAll(async () => {
  home = await newHome()
  gateway = await BuiltGateway.start(home)
  browser = await launchBrowser()
  const client = await gateway.connect()
  for (const [at, content] of ['What is 12 * (3 + 4)? And what time is it?', ...ATTACKS].entries())
    await client.ask({ id: String(at), content, session: KEY })
  await client.close()
}, 240_000)

afterAll(async () => {
  await browser.close()
  await gateway.kill()
  await removeHome(home)
})

afterEach(async () => {
  for (const context of browser.contexts()) {
    for (const page of context.pages()) await page.unrouteAll({ behavior: 'ignoreErrors' })
    await context.close()
  }
})

let turn = 0

/** Every text of an answer with an attack behind it. */
function poisoned(value: unknown, field = ''): unknown {
  if (typeof value === 'string')
    return STEERING.has(field) ? value : `${value} ${ATTACKS[turn++ % ATTACKS.length] ?? ''}`
  if (Array.isArray(value)) return value.map((one) => poisoned(one, field))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, poisoned(inner, name)]))
}

async function poison(route: Route): Promise<void> {
  const { pathname } = new URL(route.request().url())
  if (pathname === '/api/events') return route.fulfill({ contentType: 'text/event-stream', body: eventsOf() })
  const response = await route.fetch()
  const text = await response.text()
  try {
    await route.fulfill({ response, body: JSON.stringify(poisoned(JSON.parse(text))) })
  } catch {
    await route.fulfill({ response, body: text })
  }
}

/** Rows, turns, tools and refusals as a hostile model or channel would have them told. */
function eventsOf(): string {
  const attack = ATTACKS.join('\n')
  const about = { key: KEY, run: 'run_attack', at: Date.now() }
  const frames = [
    ['session', { key: `${KEY}2`, title: attack, preview: attack, lastChannel: attack, model: attack, updatedAt: 1 }],
    [
      'turn',
      {
        ...about,
        event: { type: 'event', event: 'tool_start', data: { callId: '1', tool: attack, arguments: { a: attack } } },
      },
    ],
    ['turn', { ...about, event: { type: 'event', event: 'model_retry', data: { code: attack } } }],
    ['turn', { ...about, event: { type: 'delta', offset: 0, delta: attack } }],
    ['log', { at: 1, level: 'warn', message: attack, facts: { a: attack } }],
  ] as const
  return frames.map(([name, data], at) => `id: ${at + 1}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('')
}

/** Elements that no page of ours has: each would be a text that became markup. */
async function harm(page: Page): Promise<unknown> {
  return page.evaluate(`({
    hurt: window.hurt ?? null,
    scripts: [...document.scripts].filter((one) => new URL(one.src || 'about:blank').origin !== location.origin).length,
    images: [...document.images].filter((one) => !new URL(one.src).pathname.match(/^\\/(clew\\.svg|api\\/)/)).length,
    handlers: document.querySelectorAll('[onerror], [onload], [onclick]').length,
    links: [...document.querySelectorAll('a[href]')].filter((one) => !/^(https?:|mailto:)$/.test(one.protocol)).length,
  })`)
}

const HARMLESS = { hurt: null, scripts: 0, images: 0, handlers: 0, links: 0 }

const NOTICE_END_OF_EVENTS = `{
  window.endedStreams = 0
  window.EventSource = class extends EventSource {
    constructor(...given) {
      super(...given)
      this.addEventListener('error', () => window.endedStreams++)
    }
  }
}`

const PAGES = [
  '/',
  '/c',
  `/c/${KEY}`,
  `/c/${KEY}/x/1`,
  `/c/${KEY}/x`,
  `/c/${KEY}/t`,
  '/start',
  '/xiaoyi',
  '/tokens',
  '/search?q=window',
  '/settings',
  '/cluster',
  '/logs',
  `/c/${encodeURIComponent(ATTACKS[0] ?? '')}`,
  `/search?q=${encodeURIComponent(ATTACKS[1] ?? '')}`,
]

it.each(PAGES)('shows attacks in every field of %s as letters', async (path) => {
  const page = await newPage(browser)
  await page.addInitScript(NOTICE_END_OF_EVENTS)
  const complaints = complaintsOf(page)
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).hostname))
  await page.route('**/api/**', poison)
  await page.goto(`${gateway.url}${path}`)
  await page.locator('main').waitFor(PATIENCE)
  // The stream ends behind its last event, and with that of a page that asks for other events it begins anew.
  await expect.poll(() => page.evaluate('window.endedStreams'), PATIENCE).toBeGreaterThan(0)
  await untilStill(page)
  // Whatever is folded is opened too.
  await page.evaluate(`for (const one of document.querySelectorAll('details')) one.open = true`)
  await page
    .locator('main *')
    .first()
    .waitFor({ state: 'attached', ...PATIENCE })
  expect(await harm(page)).toEqual(HARMLESS)
  expect(new Set(asked)).toEqual(new Set(['127.0.0.1']))
  expect(complaints).toEqual([])
})

it('shows stored attacks and a megabyte on one line, and stays alive', async () => {
  const client = await gateway.connect()
  await client.ask({ id: 'long', content: `${'x'.repeat(900_000)}${ATTACKS[1] ?? ''}`, session: KEY })
  await client.close()
  const page = await (await browser.newContext({ locale: 'en-GB' })).newPage()
  const complaints = complaintsOf(page)
  await page.goto(`${gateway.url}/c/${KEY}`)
  await page.getByRole('button', { name: 'Show all of it' }).first().click(PATIENCE)
  await expect.poll(() => page.getByRole('button', { name: 'Show all of it' }).count(), PATIENCE).toBeLessThan(2)
  expect(await harm(page)).toEqual(HARMLESS)
  await page.evaluate(`document.querySelector('.scroll').scrollTop = 0`)
  const shown = async (): Promise<readonly string[]> => page.locator('.instruction .bubble').allTextContents()
  await expect.poll(async () => (await shown()).map((text) => text.slice(0, 40)), PATIENCE).toContain(ATTACKS[0])
  expect(complaints).toEqual([])
})
