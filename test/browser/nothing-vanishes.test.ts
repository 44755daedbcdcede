import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { BuiltGateway, newHome, removeHome } from '../support/built-gateway.ts'
import { complaintsOf, launchBrowser, newPage, PATIENCE } from './browser.ts'
import { CutLine } from './cut-line.ts'

let browser: Browser
let home: string
let gateway: BuiltGateway
let line: CutLine

beforeAll(async () => {
  home = await newHome()
  gateway = await BuiltGateway.start(home)
  browser = await launchBrowser()
}, 240_000)

afterAll(async () => {
  await browser.close()
  await gateway.kill()
  await removeHome(home)
})

beforeEach(async () => {
  line = await CutLine.open(gateway.port)
})

afterEach(async () => {
  for (const context of browser.contexts()) await context.close()
  await line.close()
})

async function open(path: string, context?: Awaited<ReturnType<Browser['newContext']>>): Promise<Page> {
  const page = await (context ?? (await browser.newContext({ locale: 'en-GB' }))).newPage()
  await page.goto(`${line.url}${path}`)
  return page
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill(text)
  await page.keyboard.press('Enter')
}

interface Stored {
  readonly id: string
  readonly role: string
  readonly text?: string
  readonly images?: readonly unknown[]
  readonly blocks?: readonly { readonly type: string }[]
}

async function stored(key: string): Promise<readonly Stored[]> {
  const response = await fetch(`${gateway.url}/api/sessions/${encodeURIComponent(key)}/messages?limit=500`)
  return response.ok ? ((await response.json()) as { messages: Stored[] }).messages : []
}

/** Instructions and answers of the transcript, in order: what the thread shows as knots. */
async function knotsOf(key: string): Promise<readonly string[]> {
  return (await stored(key))
    .filter(({ role, blocks }) => role === 'user' || (blocks?.every(({ type }) => type !== 'call') ?? false))
    .map(({ id }) => id)
}

/** Knots on the page; one that is not stored has no id. */
const shownKnots = (page: Page): Promise<readonly string[]> =>
  page.evaluate(`[...document.querySelectorAll('.thread > .knot')].map((knot) => knot.id.replace('entry-', ''))`)

it('follows in one tab what was brought back and started over in another', async () => {
  const client = await gateway.connect()
  await client.ask({ id: 'tabs', content: 'What is 6 * 7?', session: 'tabs' })
  await client.close()
  const page = await open('/c/tabs')
  await page.getByText('6 * 7 = 42').waitFor(PATIENCE)
  await page.locator('.out-of-view').first().waitFor(PATIENCE)
  const post = (path: string, body: object = {}): Promise<Response> =>
    fetch(`${gateway.url}/api/sessions/tabs/${path}`, { method: 'POST', body: JSON.stringify(body) })
  await post('restore')
  await page
    .locator('.out-of-view')
    .first()
    .waitFor({ state: 'detached', ...PATIENCE })
  await post('reset')
  await page.getByText('Nothing was said here yet.').waitFor(PATIENCE)
  const { sessions } = (await (await fetch(`${gateway.url}/api/sessions?archived=1`)).json()) as {
    sessions: { of: string; sessionId: string }[]
  }
  await post('restore', { archive: sessions.find(({ of }) => of === 'tabs')?.sessionId })
  await page.getByText('6 * 7 = 42').waitFor(PATIENCE)
})

it('says in one tab that its conversation was deleted in another', async () => {
  const client = await gateway.connect()
  await client.ask({ id: 'gone', content: 'What is 6 * 7?', session: 'gone' })
  const page = await open('/c/gone')
  await page.getByText('6 * 7 = 42').waitFor(PATIENCE)
  await fetch(`${gateway.url}/api/sessions/gone`, { method: 'DELETE' })
  await page.getByText('This conversation does not exist (any more).').waitFor(PATIENCE)
  expect(await page.getByText('6 * 7 = 42').count()).toBe(0)
  await client.ask({ id: 'again', content: 'What is 7 * 7?', session: 'gone' })
  await client.close()
  await page.getByText('7 * 7 = 49').waitFor(PATIENCE)
})

it('keeps what it shows while the gateway cannot say more, and goes on by itself', async () => {
  const page = await open('/c/busy')
  await say(page, 'What is 2 + 2?')
  await page.getByText('2 + 2 = 4').waitFor(PATIENCE)
  await page.route('**/busy/messages*', (route) =>
    route.fulfill({ status: 503, json: { error: 'the database is away', code: 'STORAGE_UNAVAILABLE' } }),
  )
  await say(page, 'What is 3 + 3?')
  await page.getByText('the database is away').waitFor(PATIENCE)
  expect(await page.getByText('2 + 2 = 4').count()).toBe(1)
  await page.unroute('**/busy/messages*')
  await page.getByText('3 + 3 = 6').waitFor(PATIENCE)
  // The words may be there before they are stored, as an answer in the making.
  await page.getByText('the database is away').waitFor({ state: 'detached', ...PATIENCE })
  await equalsTranscript(page, 'busy', ['What is 2 + 2?', 'What is 3 + 3?'])
})

/** An event stream of its own: resolves when one event has all of these words. */
async function listen(): Promise<(...words: readonly string[]) => Promise<void>> {
  const leave = new AbortController()
  const { body } = await fetch(`${gateway.url}/api/events`, { signal: leave.signal })
  return async (...words) => {
    let text = ''
    for await (const piece of body ?? []) {
      text += Buffer.from(piece).toString()
      if (text.split('\n\n').some((event) => words.every((word) => event.includes(word)))) break
    }
    leave.abort()
  }
}

it('lists a conversation that began while the list was on its way', async () => {
  const page = await newPage(browser)
  const client = await gateway.connect()
  await page.route(/\/api\/sessions\?/u, async (route) => {
    const response = await route.fetch()
    const heard = await listen()
    await client.ask({ id: 'meanwhile', content: 'Begun meanwhile', session: 'meanwhile' })
    await heard('"key":"meanwhile"', '"state":"idle"')
    await route.fulfill({ response })
  })
  await page.goto(`${line.url}/c`)
  await page.locator('.virtual').getByText('Begun meanwhile').waitFor(PATIENCE)
  await client.close()
})

/** The page ends up with exactly the transcript: each message once, in its order, nothing being written. */
async function equalsTranscript(page: Page, key: string, instructions: readonly string[]): Promise<void> {
  await expect
    .poll(async () => (await stored(key)).filter(({ role }) => role === 'user').map(({ text }) => text), PATIENCE)
    .toEqual(instructions)
  await expect
    .poll(async () => {
      const { state } = (
        (await (await fetch(`${gateway.url}/api/sessions?q=${encodeURIComponent(key)}`)).json()) as {
          sessions: { state: string }[]
        }
      ).sessions[0] ?? { state: 'none' }
      return state
    }, PATIENCE)
    .toBe('idle')
  const knots = await knotsOf(key)
  await expect.poll(() => shownKnots(page), PATIENCE).toEqual(knots)
  // Text that is scrolled out of sight is not laid out, and has no `innerText`.
  expect(await page.locator('.instruction .bubble').allTextContents()).toEqual(instructions)
}

it('shows the same conversation in two tabs, whichever writes', async () => {
  const context = await browser.newContext({ locale: 'en-GB' })
  const one = await open('/c/two-tabs', context)
  const other = await open('/c/two-tabs', context)
  const complaints = [complaintsOf(one), complaintsOf(other)]
  await say(one, 'What is 2 + 2?')
  await other.getByText('2 + 2 = 4').waitFor(PATIENCE)
  await say(other, 'What is 12 * 12?')
  await one.getByText('12 * 12 = 144').waitFor(PATIENCE)
  for (const page of [one, other]) await equalsTranscript(page, 'two-tabs', ['What is 2 + 2?', 'What is 12 * 12?'])
  expect(complaints).toEqual([[], []])
})

/** Limits of requests that follow the clock of the page, as its timers do. */
const LIMITS_BY_CLOCK = `AbortSignal.timeout = (ms) => {
  const limit = new AbortController()
  setTimeout(() => limit.abort(new DOMException('The time is over.', 'TimeoutError')), ms)
  return limit.signal
}`

/** Waits on the clock of the page, which goes four times as fast as that of the gateway. */
async function waitFast(page: Page, text: string): Promise<void> {
  const look = async (): Promise<number> => {
    await page.clock.fastForward(1_000)
    return page.getByText(text).count()
  }
  await expect.poll(look, { ...PATIENCE, interval: 250 }).toBe(1)
}

it('catches up after an hour of sleep in which its sockets died without a close', async () => {
  const page = await newPage(browser)
  await page.addInitScript(LIMITS_BY_CLOCK)
  await page.clock.install()
  await page.goto(`${line.url}/c/asleep`)
  await say(page, 'What is 2 + 2?')
  await page.getByText('2 + 2 = 4').waitFor(PATIENCE)
  line.fallSilent()
  const client = await gateway.connect('?uid=other')
  await client.ask({ id: 'while-asleep', content: 'What is 3 + 3?', session: 'asleep' })
  await client.close()
  expect(await page.getByText('3 + 3 = 6').count()).toBe(0)
  await page.clock.fastForward('01:00:00')
  await waitFast(page, '3 + 3 = 6')
  await say(page, 'What is 4 + 4?')
  await page.clock.fastForward('01:00')
  await waitFast(page, '4 + 4 = 8')
  await equalsTranscript(page, 'asleep', ['What is 2 + 2?', 'What is 3 + 3?', 'What is 4 + 4?'])
})

it('sends a message that was written offline once the line is back, also after a reload of the page', async () => {
  const page = await open('/c/offline')
  await say(page, 'What is 2 + 2?')
  await page.getByText('2 + 2 = 4').waitFor(PATIENCE)
  line.cut()
  await page.getByText(/No connection/u).waitFor(PATIENCE)
  await say(page, 'What is 5 + 5?')
  await page.getByText('sending', { exact: true }).waitFor(PATIENCE)
  expect(await page.getByText('2 + 2 = 4').count()).toBe(1)
  line.mend()
  await page.getByText('5 + 5 = 10').waitFor(PATIENCE)
  await equalsTranscript(page, 'offline', ['What is 2 + 2?', 'What is 5 + 5?'])
  await page.reload()
  await equalsTranscript(page, 'offline', ['What is 2 + 2?', 'What is 5 + 5?'])
})

it('says of a waiting message that a stop discarded it, also after a reload, and sends it again', async () => {
  const page = await open('/c/discarded')
  await say(page, 'Count to 9999')
  await page.locator('.answer.live').waitFor(PATIENCE)
  for (const text of ['What is 2 + 2?', 'What is 3 + 3?']) {
    await say(page, text)
    await page.locator('.outgoing.accepted').getByText(text).waitFor(PATIENCE)
  }
  await page.getByRole('button', { name: 'Stop' }).click()
  await expect.poll(() => page.getByText('not answered', { exact: true }).count(), PATIENCE).toBe(2)
  await page.reload()
  await expect.poll(() => page.getByText('not answered', { exact: true }).count(), PATIENCE).toBe(2)
  await page.getByRole('button', { name: 'Discard' }).first().click()
  await page.getByRole('button', { name: 'Send again' }).click()
  await page.getByText('3 + 3 = 6').waitFor(PATIENCE)
  await equalsTranscript(page, 'discarded', ['Count to 9999', 'What is 3 + 3?'])
  // A stop that came while no page was open.
  await say(page, 'Count to 9999')
  await page.locator('.answer.live').waitFor(PATIENCE)
  await say(page, 'What is 4 + 4?')
  await page.locator('.outgoing.accepted').waitFor(PATIENCE)
  await page.goto('about:blank')
  await fetch(`${gateway.url}/api/sessions/discarded/cancel`, { method: 'POST' })
  await page.goto(`${line.url}/c/discarded`)
  await page.getByText('not answered', { exact: true }).waitFor(PATIENCE)
})

it('keeps the unsent messages of two tabs over a reload of both', async () => {
  const context = await browser.newContext({ locale: 'en-GB' })
  const one = await open('/c/unsent-one', context)
  const other = await open('/c/unsent-other', context)
  for (const page of [one, other]) await page.locator('.composer').waitFor(PATIENCE)
  line.cut()
  await say(one, 'What is 5 + 5?')
  await one.getByText('sending', { exact: true }).waitFor(PATIENCE)
  await say(other, 'What is 6 + 6?')
  await other.getByText('sending', { exact: true }).waitFor(PATIENCE)
  line.mend()
  // Before either has sent what it holds.
  await Promise.all([one, other].map((page) => page.goto('about:blank')))
  await one.goto(`${line.url}/c/unsent-one`)
  await one.getByText('5 + 5 = 10').waitFor(PATIENCE)
  await one.goto(`${line.url}/c/unsent-other`)
  await one.getByText('6 + 6 = 12').waitFor(PATIENCE)
  await equalsTranscript(one, 'unsent-other', ['What is 6 + 6?'])
})

it('opens a page of its own file that was asked for offline, and asks anew what waits for approval', async () => {
  const page = await newPage(browser)
  const complaints = complaintsOf(page)
  let approvals = [{ id: 'a1', session: 'quiet', tool: 'deploy', arguments: {} }]
  await page.route('**/api/approvals', (route) => route.fulfill({ json: { approvals } }))
  await page.goto(`${line.url}/`)
  const panel = page.getByRole('region', { name: 'Waiting for approval' })
  await panel.getByText('deploy').waitFor(PATIENCE)
  await gateway.kill()
  await page.getByText(/No connection/u).waitFor(PATIENCE)
  approvals = []
  gateway = await BuiltGateway.start(home, ['--port', String(gateway.port)])
  await panel.waitFor({ state: 'detached', ...PATIENCE })
  line.cut()
  await page.getByText(/No connection/u).waitFor(PATIENCE)
  await page.getByRole('link', { name: 'Tokens' }).click()
  await page.getByText('This page could not be loaded.').waitFor(PATIENCE)
  line.mend()
  await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor(PATIENCE)
  expect(complaints).toEqual([])
})

it('keeps the conversation whole when the page is reloaded in the middle of an answer', async () => {
  const page = await open('/c/reloaded')
  await say(page, 'Count to 300')
  await page.locator('.answer.live').waitFor(PATIENCE)
  await page.reload()
  await page.locator('.answer').first().waitFor(PATIENCE)
  await equalsTranscript(page, 'reloaded', ['Count to 300'])
})

it('equals the transcript after the gateway was killed and started during an answer, in both tabs', async () => {
  const context = await browser.newContext({ locale: 'en-GB' })
  const one = await open('/c/killed-twice', context)
  const other = await open('/c/killed-twice', context)
  await say(one, 'Count to 300')
  await one.locator('.answer.live').waitFor(PATIENCE)
  for (let times = 0; times < 2; times++) {
    await gateway.kill()
    await one.getByText(/No connection/u).waitFor(PATIENCE)
    gateway = await BuiltGateway.start(home, ['--port', String(gateway.port)])
    line.mend(gateway.port)
    await expect.poll(() => one.getByText(/No connection/u).count(), PATIENCE).toBe(0)
  }
  for (const page of [one, other]) await equalsTranscript(page, 'killed-twice', ['Count to 300'])
})

it('sends files that were chosen and dropped, not one that was removed, and keeps them over a reload', async () => {
  const page = await open('/c/files')
  const complaints = complaintsOf(page)
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAFElEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC'
  await page.locator('input[type=file]').setInputFiles({
    name: 'red.png',
    mimeType: 'image/png',
    buffer: Buffer.from(png, 'base64'),
  })
  await page.getByText('red.png').waitFor(PATIENCE)
  for (const [event, name] of [
    ['paste', 'pasted.txt'],
    ['drop', 'dropped.txt'],
  ] as const) {
    await page.evaluate(`{
      const data = new DataTransfer()
      data.items.add(new File(['words of ${name}'], '${name}', { type: 'text/plain' }))
      const options = { bubbles: true, cancelable: true }
      const event = '${event}' === 'paste'
        ? new ClipboardEvent('paste', { ...options, clipboardData: data })
        : new DragEvent('drop', { ...options, dataTransfer: data })
      document.querySelector('.composer textarea').dispatchEvent(event)
    }`)
    await page.locator('.file-chip.ready', { hasText: name }).waitFor(PATIENCE)
  }
  await page.getByRole('button', { name: 'Remove pasted.txt' }).click()
  await page.reload()
  await expect.poll(() => page.locator('.file-chip.ready').count(), PATIENCE).toBe(2)
  await say(page, 'What do you see?')
  await expect.poll(() => page.locator('.file-chip').count(), PATIENCE).toBe(0)
  await page.locator('.answer').first().waitFor(PATIENCE)
  const [message] = await stored('files')
  expect(message?.text).toContain('What do you see?')
  expect(message?.text).toContain('words of dropped.txt')
  expect(message?.text).not.toContain('words of pasted.txt')
  expect(complaints).toEqual([])
})
