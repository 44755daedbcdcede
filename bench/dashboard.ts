import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { launchBrowser, type complaintsOf } from '../test/browser/browser.ts'
import { GatewayProcess } from './lib/gateway-process.ts'

/**
 * What the dashboard costs a browser, in processor time of the page's main thread, on the budgets of its design: 16 ms a
 * frame for 10 000 conversations, 300 ms to open 5 000 messages, no task over 50 ms while 20 000 pieces of an answer come.
 */
const CONVERSATIONS = 10_000
const MESSAGES = 5_000
const FRAMES = 120

type Page = Parameters<typeof complaintsOf>[0]

const home = GatewayProcess.newHome()
fill()
const gateway = await GatewayProcess.start(home)
const browser = await launchBrowser()
try {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-GB' })
  const page = await context.newPage()
  const url = `http://127.0.0.1:${gateway.port}`
  await page.goto(url)
  await page.locator('main').waitFor()

  const list = await spent(page, async () => {
    await page.goto(`${url}/c`)
    await page.locator('.list a').first().waitFor()
  })
  line('open the list of 10 000 conversations', `${list.toFixed(0)} ms`)
  line('scroll it', await scroll(page, '.list .virtual'))

  const open = await spent(page, async () => {
    await page.goto(`${url}/c/long`)
    await page.locator('.answer').first().waitFor()
  })
  line('open a conversation of 5 000 messages', `${open.toFixed(0)} ms (its latest 200)`)
  const rest = await spent(page, async () => {
    const older = page.getByRole('button', { name: 'Show earlier messages' })
    for (let before = 0; before < MESSAGES && (await older.count()) > 0;) {
      await older.click()
      const known = before
      for (let waits = 0; before === known && waits < 500; waits++) {
        await page.waitForTimeout(20)
        before = await page.locator('.thread > .knot').count()
      }
    }
  })
  const shown = await page.locator('.thread > .knot').count()
  line('load all of it', `${rest.toFixed(0)} ms, ${shown} knots in the page`)
  line('scroll it', await scroll(page, '.scroll'))

  await page.goto(`${url}/c/growing`)
  await page.evaluate(`{
    window.longest = 0
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration)
    }).observe({ type: 'longtask', buffered: true })
    window.longest = 0
  }`)
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill('Count to 5000')
  const growing = await spent(page, async () => {
    await page.keyboard.press('Enter')
    await page.locator('.answer:not(.live)').first().waitFor({ timeout: 300_000 })
  })
  const longest = Number(await page.evaluate('window.longest'))
  line(
    'a long answer as it grows',
    `${growing.toFixed(0)} ms in all, longest task ${longest.toFixed(0)} ms of wall time`,
  )

  const started = performance.now()
  await page.goto(`${url}/c/long/x`)
  await page
    .getByText(/Byte for byte|Cannot be rebuilt|not been asked/u)
    .first()
    .waitFor()
  line('X-ray until it can be read', `${(performance.now() - started).toFixed(0)} ms of wall time`)
} finally {
  await browser.close()
  await gateway.stop()
  GatewayProcess.removeHome(home)
}

function line(what: string, value: string): void {
  console.log(`${what.padEnd(42)} ${value}`)
}

/** Processor time of the page's main thread. */
async function spent(page: Page, act: () => Promise<void>): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const taskMs = async (): Promise<number> => {
    const { metrics } = await session.send('Performance.getMetrics')
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000
  }
  const before = await taskMs()
  await act()
  const after = await taskMs()
  await session.detach()
  return after - before
}

async function scroll(page: Page, selector: string): Promise<string> {
  const ms = await spent(page, async () => {
    await page.evaluate(`new Promise((resolve) => {
      const box = document.querySelector('${selector}')
      let frame = 0
      const step = () => {
        box.scrollTop += (frame < ${FRAMES / 2} ? 1 : -1) * 150
        if (++frame < ${FRAMES}) requestAnimationFrame(step)
        else resolve()
      }
      box.scrollTop = box.scrollHeight / 2
      requestAnimationFrame(step)
    })`)
  })
  return `${(ms / FRAMES).toFixed(1)} ms a frame`
}

function fill(): void {
  const folder = join(home, 'sessions')
  mkdirSync(folder, { recursive: true })
  const index: Record<string, object> = {}
  for (let n = 0; n < CONVERSATIONS; n++) {
    const sessionId = `sess_${n.toString(16).padStart(32, '0')}`
    index[`conversation-${n}`] = { sessionId, updatedAt: Date.UTC(2026, 0, 1) + n * 1_000 }
  }
  const sessionId = `sess_${'f'.repeat(32)}`
  index['long'] = { sessionId, updatedAt: Date.UTC(2026, 1, 1) }
  writeFileSync(join(folder, `${sessionId}.jsonl`), longTranscript(sessionId))
  writeFileSync(join(home, 'sessions.json'), JSON.stringify(index))
  writeFileSync(join(home, 'bridge.json'), '{}')
}

function longTranscript(id: string): string {
  const timestamp = '2026-01-01T00:00:00.000Z'
  const lines: object[] = [{ type: 'session', version: 3, id, timestamp, cwd: '/' }]
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
  const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost }
  for (let n = 0; n < MESSAGES; n++) {
    const own = n.toString(16).padStart(8, '0')
    const parentId = n === 0 ? null : (n - 1).toString(16).padStart(8, '0')
    const text = `Message **${n}** with \`code\` and a [link](https://example.com). ${'Some more words follow. '.repeat(8)}`
    const content = [{ type: 'text', text }]
    const message =
      n % 2 === 0
        ? { role: 'user', content, timestamp: n }
        : { role: 'assistant', content, timestamp: n, api: 'x', provider: 'x', model: 'x', usage, stopReason: 'stop' }
    const stepId = `run_${Math.floor(n / 2)}`
    lines.push({ type: 'message', id: own, parentId, timestamp, message, stepId })
  }
  return `${lines.map((one) => JSON.stringify(one)).join('\n')}\n`
}
