import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { BuiltGateway, newHome, removeHome } from '../support/built-gateway.ts'
import { databaseUrl, freshSchema } from '../support/test-database.ts'
import { complaintsOf, launchBrowser, PATIENCE } from './browser.ts'

let browser: Browser
const homes: string[] = []
const nodes: BuiltGateway[] = []

beforeAll(async () => {
  const storage = { kind: 'postgres', url: await databaseUrl(), schema: freshSchema(), lease_ms: 1_000 }
  for (let n = 0; n < 2; n++) {
    const home = await newHome({ storage })
    homes.push(home)
    nodes.push(await BuiltGateway.start(home))
  }
  browser = await launchBrowser()
}, 240_000)

afterAll(async () => {
  await browser.close()
  for (const node of nodes) await node.kill()
  for (const home of homes) await removeHome(home)
})

it('shows the gateways of one real database, what they hold, and the one that was lost', async () => {
  const page = await (await browser.newContext({ locale: 'en-GB' })).newPage()
  const complaints = complaintsOf(page)
  await page.goto(`${nodes[0]?.url}/cluster`)
  await page.getByRole('heading', { name: '2 gateways' }).waitFor(PATIENCE)
  await page.getByText('The database answers.').waitFor(PATIENCE)
  await expect.poll(() => page.getByText('live', { exact: true }).count(), PATIENCE).toBe(2)
  const client = await nodes[1]?.connect()
  await client?.ask({ id: '1', content: 'What is 2 + 2?', session: 'shared' })
  await client?.close()
  await page.goto(`${nodes[0]?.url}/c/shared`)
  await page.getByText('2 + 2 = 4').waitFor(PATIENCE)
  await page.goto(`${nodes[0]?.url}/cluster`)
  await page.getByRole('heading', { name: '2 gateways' }).waitFor(PATIENCE)
  await nodes[1]?.kill()
  await page.getByRole('heading', { name: '1 gateway lost within the last hour' }).waitFor(PATIENCE)
  await page.getByRole('heading', { name: '1 gateway', exact: true }).waitFor(PATIENCE)
  expect(complaints).toEqual([])
})
