import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { build, ROOT } from '../support/built-gateway.ts'
import { fencesOf, readDocument } from '../support/documents.ts'
import { InstalledProject } from '../support/installed-project.ts'

interface Manifest {
  readonly version: string
  readonly exports: Readonly<Record<string, unknown>>
}

describe('the package, installed from its tarball into a project', () => {
  let project: InstalledProject
  let manifest: Manifest

  beforeAll(async () => {
    await build()
    manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Manifest
    project = await InstalledProject.create()
  }, 180_000)

  afterAll(() => project.remove())

  it('npx clew --version names the version of Clew, not that of the project', async () => {
    expect(await project.npx('clew', '--version')).toEqual({ code: 0, output: `${manifest.version}\n` })
  })

  it('npx clew start serves messages and the dashboard, and ends when it is asked to', async () => {
    const home = join(project.folder, 'home')
    const start = ['--offline', 'clew', 'start', '--home', home, '--port', '0']
    const child = spawn('npx', start, { cwd: project.folder, env: project.env, detached: true })
    try {
      const url = await printedUrl(child)
      expect((await fetch(`${url}/healthz`)).status).toBe(200)
      const page = await fetch(url, { headers: { accept: 'text/html' } })
      expect(await page.text()).toMatch(/^<!doctype html>/iu)
      const answer = await fetch(`${url}/api/messages`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ content: 'What is 12 * 12?' }),
      })
      expect(await answer.json()).toMatchObject({ content: expect.stringContaining('144') as string })
      expect(await project.npx('clew', 'status', '--home', home)).toMatchObject({ code: 0 })
      const [, client = ''] = programsOf('docs/library.md')
      await project.write('client.js', client.replace('ws://127.0.0.1:8080', url.replace('http', 'ws')))
      const asked = await project.node('client.js')
      expect(asked).toEqual({ code: 0, output: expect.stringContaining('144') as string })
      expect(await project.npx('clew', 'stop', '--home', home)).toMatchObject({ code: 0 })
      await new Promise((resolve) => (child.exitCode === null ? child.once('exit', resolve) : resolve(undefined)))
    } finally {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
    }
  })

  it('every entry point can be imported', async () => {
    const entries = Object.keys(manifest.exports).filter((entry) => entry !== './package.json')
    expect(entries.length).toBeGreaterThan(5)
    const names = entries.map((entry) => entry.replace(/^\./u, 'clew'))
    const imports = names.map((name) => `console.log('${name}', typeof (await import('${name}')))`)
    await project.write('imports.js', imports.join('\n'))
    expect(await project.node('imports.js')).toEqual({
      code: 0,
      output: names.map((name) => `${name} object\n`).join(''),
    })
  })

  it('the programs of docs/library.md run', async () => {
    const [code = '', , transcripts = '', ...others] = programsOf('docs/library.md')
    expect(others).toEqual([])
    await project.write('transcripts.js', `${transcripts}\nconsole.log(messages.length)\n`)
    expect(await project.node('transcripts.js')).toEqual({ code: 0, output: '1\n' })
    await project.write('index.js', `${code.replace('port: 8080', 'port: 0')}\nprocess.kill(process.pid, 'SIGINT')\n`)
    const { code: exit, output } = await project.node('index.js')
    expect({ exit, output }).toEqual({ exit: 0, output: expect.stringMatching(/^open http:\/\/127/u) as string })
  })

  it('its examples run, and compile against the declarations that come with it', async () => {
    await project.copyExamples()
    const simulated = await project.node('examples/testing/simulated-provider.mjs')
    expect(simulated).toEqual({ code: 0, output: '2 requests, both valid; the answer: It is 42.\n' })
    const gateway = await project.node('examples/library/gateway.mjs')
    expect(gateway).toMatchObject({ code: 0, output: expect.stringContaining('You said: hello') as string })
    await project.addTypes()
    expect(await project.check('examples/plugins/typed.ts', 'examples/node/client.ts')).toEqual({ code: 0, output: '' })
  })
})

function programsOf(document: string): readonly string[] {
  return fencesOf(readDocument(document).text)
    .filter(({ language }) => language === 'js')
    .map(({ code }) => code)
}

/** The address in what the gateway prints when it is ready. */
function printedUrl(child: ReturnType<typeof spawn>): Promise<string> {
  let output = ''
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (piece: Buffer) => {
        output += piece.toString()
        const url = /https?:\/\/127\.0\.0\.1:\d+/u.exec(output)?.[0]
        if (url !== undefined) resolve(url)
      })
    child.once('exit', () => reject(new Error(`the gateway ended: ${output}`)))
  })
}
