import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bodyOf, FORMS, type Form } from './chat-templates/bodies.ts'
import { unpackPackages } from './chat-templates/debian-packages.ts'
import { fetchTemplates } from './chat-templates/fetch-templates.ts'
import { createLlamaRenderer } from './chat-templates/llama-renderer.ts'
import { createPythonRenderer } from './chat-templates/python-renderer.ts'
import { MissingInput } from './chat-templates/missing-input.ts'
import type { Renderer } from './chat-templates/renderer.ts'
import { tinyGguf } from './chat-templates/tiny-gguf.ts'

/**
 * `npm run real:llama [-- --templates FOLDER] [--histories N] [--seed S] [--only NAME] [--root FOLDER]`: random damaged
 * histories, prepared and encoded as for a compatible server, rendered with every chat template by Jinja2 and by a real
 * `llama-server` with a tiny model made here. FOLDER is `models/templates` of a checkout of llama.cpp (also
 * `CLEW_LLAMA_TEMPLATES`); without it that folder is fetched with git. What is fetched, Debian's packages too, is kept
 * below the folder for temporary files.
 */
const CONTEXT_TOKENS = 131_072

/** Templates without a tool and a system role: they get the safest form. */
const NEEDS_SAFEST: ReadonlySet<string> = new Set(['google-gemma-2-2b-it.jinja'])

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

try {
  process.exitCode = (await run()) ? 0 : 1
} catch (thrown) {
  console.error(thrown instanceof MissingInput ? thrown.message : thrown)
  process.exitCode = 1
}

async function run(): Promise<boolean> {
  const cache = join(tmpdir(), 'clew-real-llama')
  await mkdir(cache, { recursive: true })
  const folder = argument('--templates') ?? process.env['CLEW_LLAMA_TEMPLATES'] ?? fetchTemplates(cache)
  const only = argument('--only') ?? ''
  const templates = (await readdir(folder)).filter((name) => name.endsWith('.jinja') && name.includes(only)).toSorted()
  const histories = Number(argument('--histories') ?? 200)
  const seed = Number(argument('--seed') ?? 1)
  const root = argument('--root') ?? (await unpackPackages(cache))
  const model = join(cache, 'tiny.gguf')
  await writeFile(model, tinyGguf(CONTEXT_TOKENS))
  const renderers = [
    createPythonRenderer(join(root, 'usr/lib/python3/dist-packages')),
    createLlamaRenderer({ root, model }),
  ]
  const bodies = new Map(
    FORMS.map((form) => [form, Array.from({ length: histories }, (_, at) => bodyOf(seed + at, form))]),
  )
  let passed = true
  for (const renderer of renderers) {
    try {
      passed = (await renderAll(renderer, folder, templates, bodies)) && passed
    } finally {
      await renderer.close()
    }
  }
  console.log(`${histories} histories from seed ${seed}`)
  return passed
}

type Bodies = ReadonlyMap<Form, readonly string[]>

/** True when every history has a form that every template renders, and the normal one wherever that is possible. */
async function renderAll(
  renderer: Renderer,
  folder: string,
  templates: readonly string[],
  bodies: Bodies,
): Promise<boolean> {
  let normal = 0
  let all = 0
  for (const name of templates) {
    await renderer.load(join(folder, name))
    const problems = new Map<Form, Map<number, string>>()
    for (const form of renderer.forms) problems.set(form, await problemsIn(renderer, bodies.get(form) ?? []))
    const refused = (form: Form): number => problems.get(form)?.size ?? 0
    if (refused('normal') === 0) normal += 1
    const picturesRefused = (await showsPictures(join(folder, name))) ? refused('pictures') : 0
    const best = NEEDS_SAFEST.has(name) ? refused('safest') : refused('normal') + picturesRefused
    if (best === 0) all += 1
    for (const form of FORMS) {
      const [first] = problems.get(form) ?? []
      if (first === undefined) continue
      const [at, problem] = first
      console.log(
        `${renderer.name}  ${name}  ${form}: ${refused(form)} refused, first at ${at}: ${problem.slice(0, 200)}`,
      )
    }
  }
  console.log(
    `${renderer.name}: ${normal} of ${templates.length} templates render every history in its normal form, ` +
      `${all} with the safest form where it is needed`,
  )
  return all === templates.length
}

/** The others are for models that do not see, which get no pictures. */
async function showsPictures(template: string): Promise<boolean> {
  return (await readFile(template, 'utf8')).includes('image')
}

async function problemsIn(renderer: Renderer, bodies: readonly string[]): Promise<Map<number, string>> {
  const problems = new Map<number, string>()
  for (const [at, body] of bodies.entries()) {
    const problem = await renderer.problemOf(body)
    if (problem !== undefined) problems.set(at, problem)
  }
  return problems
}

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}
