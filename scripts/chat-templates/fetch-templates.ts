import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { MissingInput } from './missing-input.ts'

const REPOSITORY = 'https://github.com/ggml-org/llama.cpp'
const FOLDER = 'models/templates'
const TIMEOUT_MS = 120_000

/** The templates of llama.cpp, fetched once: nothing else of its files is. */
export function fetchTemplates(cache: string): string {
  const checkout = join(cache, 'llama.cpp')
  const templates = join(checkout, FOLDER)
  if (existsSync(templates)) return templates
  const clone = ['clone', '--quiet', '--depth', '1', '--filter=blob:none', '--sparse', REPOSITORY, checkout]
  if (git(clone) && git(['-C', checkout, 'sparse-checkout', 'set', FOLDER]) && existsSync(templates)) return templates
  rmSync(checkout, { recursive: true, force: true })
  throw new MissingInput(
    `The chat templates could not be fetched from ${REPOSITORY}. Check it out elsewhere and name its folder ${FOLDER} ` +
      'with --templates or CLEW_LLAMA_TEMPLATES.',
  )
}

function git(args: readonly string[]): boolean {
  const env = { ...process.env, GIT_TERMINAL_PROMPT: '0' }
  return spawnSync('git', args, { stdio: 'ignore', timeout: TIMEOUT_MS, env }).status === 0
}
