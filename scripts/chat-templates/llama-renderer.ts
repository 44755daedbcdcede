import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { FORMS } from './bodies.ts'
import type { Renderer } from './renderer.ts'

/** The smallest of the backends that are there; any x86-64 processor runs it. */
const BACKEND = 'ggml/backends0/libggml-cpu-x64.so'
const READY_ATTEMPTS = 600
const READY_PAUSE_MS = 50
/** So many bodies of each template are also answered, which takes the way through the sampler and the parser. */
const ANSWERED = 3

export interface LlamaOptions {
  /** Where the packages were unpacked. */
  readonly root: string
  readonly model: string
}

/** A real `llama-server`, started anew for each template, on loopback only. */
export function createLlamaRenderer(options: LlamaOptions): Renderer {
  let server: { readonly child: ChildProcess; readonly url: string } | undefined
  let answered = 0
  const stop = async (): Promise<void> => {
    if (server === undefined) return
    const { child } = server
    server = undefined
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  return {
    name: 'llama-server',
    // A model that sees needs a second file.
    forms: FORMS.filter((form) => form !== 'pictures'),
    async load(path) {
      await stop()
      server = await start(options, path)
      answered = 0
    },
    async problemOf(body) {
      if (server === undefined) throw new Error('no template is loaded')
      const problem = await ask(`${server.url}/apply-template`, body)
      if (problem !== undefined || answered >= ANSWERED) return problem
      answered += 1
      return ask(`${server.url}/v1/chat/completions`, body)
    },
    close: stop,
  }
}

async function ask(url: string, body: string): Promise<string | undefined> {
  // The server ends a kept connection after a hundred requests, sometimes just as the next one is written.
  const headers = { 'content-type': 'application/json', connection: 'close' }
  const response = await fetch(url, { method: 'POST', headers, body })
  const text = await response.text()
  return response.ok ? undefined : `${response.status} ${text.slice(0, 300)}`
}

async function start({ root, model }: LlamaOptions, template: string): Promise<{ child: ChildProcess; url: string }> {
  const libraries = join(root, 'usr/lib/x86_64-linux-gnu')
  const port = await freePort()
  const child = spawn(
    join(libraries, 'ld-linux-x86-64.so.2'),
    [
      ...['--library-path', [libraries, join(libraries, 'llama')].join(':'), join(root, 'usr/bin/llama-server')],
      ...['--model', model, '--host', '127.0.0.1', '--port', String(port), '--threads', '1', '--parallel', '1'],
      ...['--jinja', '--chat-template-file', template, '--log-disable', '--no-webui'],
    ],
    { stdio: 'ignore', env: { GGML_BACKEND_PATH: join(libraries, BACKEND), HOME: root } },
  )
  // A run that is stopped takes its server with it.
  const kill = (): boolean => child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.removeListener('exit', kill))
  const url = `http://127.0.0.1:${port}`
  for (let attempt = 0; attempt < READY_ATTEMPTS && child.exitCode === null; attempt++) {
    if (await isReady(url)) return { child, url }
    await new Promise((resolve) => setTimeout(resolve, READY_PAUSE_MS))
  }
  child.kill('SIGKILL')
  throw new Error(`llama-server does not start with ${template} (exit code ${child.exitCode ?? 'none'})`)
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`)).ok
  } catch {
    return false
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}
