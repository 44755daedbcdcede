import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { FORMS } from './bodies.ts'
import type { Renderer } from './renderer.ts'

/** Jinja2, which vLLM and the other servers in Python use; `packages` is where it was unpacked. */
export function createPythonRenderer(packages: string): Renderer {
  const script = fileURLToPath(new URL('render.py', import.meta.url))
  const child = spawn('python3', [script], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], PYTHONPATH: packages, PYTHONIOENCODING: 'utf-8' },
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    name: 'Jinja2',
    forms: FORMS,
    async load(path) {
      child.stdin.write(`${JSON.stringify({ template: await readFile(path, 'utf8') })}\n`)
    },
    async problemOf(body) {
      child.stdin.write(`{"body":${body}}\n`)
      const line = await lines.next()
      if (line.done === true) throw new Error('the renderer in Python ended')
      const problem: unknown = JSON.parse(line.value)
      return typeof problem === 'string' ? problem : undefined
    },
    async close() {
      const ended = once(child, 'exit')
      child.stdin.end()
      await ended
    },
  }
}
