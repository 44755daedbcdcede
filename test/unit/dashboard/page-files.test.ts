import { expect, it } from 'vitest'
import { PageFiles } from '../../../src/dashboard/page-files.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'

function pages(): PageFiles {
  const files = new MemoryFiles({ now: () => 0 })
  files.plant('/ui/index.html', 'the page')
  files.plant('/ui/index.html.br', 'page in br')
  files.plant('/ui/assets/a.js', 'code')
  files.plant('/ui/assets/a.js.br', 'code in br')
  files.plant('/ui/assets/a.js.gz', 'code in gzip')
  files.plant('/ui/assets/b.css', 'style')
  files.plant('/ui/theme.js', 'theme')
  files.plant('/ui/clew.svg', '<svg/>')
  return new PageFiles(files, '/ui')
}

async function get(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<string | undefined> {
  const url = new URL(path, 'http://127.0.0.1')
  const response = await pages().answer(new Request(url, { headers, method }), url)
  if (response === undefined) return undefined
  expect(response.headers.get('content-security-policy')).toContain("require-trusted-types-for 'script'")
  expect(response.headers.get('vary')).toBe('accept-encoding')
  return `${response.headers.get('content-encoding') ?? 'plain'}: ${await response.text()}`
}

it.each([
  ['br, gzip', 'br: code in br'],
  ['gzip', 'gzip: code in gzip'],
  ['gzip, br;q=0', 'gzip: code in gzip'],
  ['', 'plain: code'],
  ['zstd', 'plain: code'],
])('serves the form that "%s" accepts', async (accepted, expected) => {
  expect(await get('/assets/a.js', { 'accept-encoding': accepted })).toBe(expected)
})

it.each(['/', '/c/key', '/assets/a.js', '/assets/b.css', '/theme.js', '/clew.svg'])(
  'lets nothing inline, nothing from elsewhere and no frame around it at %s',
  async (path) => {
    const url = new URL(path, 'http://127.0.0.1')
    const response = await pages().answer(new Request(url, { headers: { accept: 'text/html' } }), url)
    const { headers } = response ?? new Response()
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    )
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
  },
)

it('serves a file as it is where no compressed one was built', async () => {
  expect(await get('/assets/b.css', { 'accept-encoding': 'br' })).toBe('plain: style')
})

it.each(['/', '/c/some%20key/x/3', '/cluster', '/search?q=1'])('is the page at %s for who wants HTML', async (path) => {
  expect(await get(path, { accept: 'text/html', 'accept-encoding': 'br' })).toBe('br: page in br')
  expect(await get(path)).toBeUndefined()
})

it.each(['/assets/../index.html', '/assets/a.js.br', '/assets/none.js', '/etc/passwd', '/nowhere'])(
  'has nothing at %s',
  async (path) => {
    expect(await get(path, { accept: 'application/json' })).toBeUndefined()
  },
)

it('refuses to change a file, and says what it may be asked for', async () => {
  const url = new URL('/theme.js', 'http://127.0.0.1')
  const response = await pages().answer(new Request(url, { method: 'PUT' }), url)
  expect([response?.status, response?.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})
