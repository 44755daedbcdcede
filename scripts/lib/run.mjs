import { spawn } from 'node:child_process'
import { readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository, wherever it is and whatever its path contains. */
export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

/** A failure that the message explains; no stack is printed. */
export class ScriptError extends Error {}

/** One line to standard error, so that standard output stays for the program's own. */
export function say(message) {
  process.stderr.write(`${message}\n`)
}

/**
 * Runs a program without a shell, so that spaces in paths are harmless. Resolves to its exit code and, unless it
 * inherits ours, its output.
 */
function run(program, args, { cwd = root, inherit = false, env = process.env } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env, stdio: inherit ? 'inherit' : ['ignore', 'pipe', 'pipe'] })
    const pieces = []
    child.stdout?.on('data', (piece) => pieces.push(piece))
    child.stderr?.on('data', (piece) => pieces.push(piece))
    child.on('error', reject)
    child.on('close', (code, signal) => {
      resolve({ code: code ?? (signal === null ? 1 : 128), output: Buffer.concat(pieces).toString('utf8') })
    })
  })
}

/** The command of an installed package, run by this very Node: `.bin` links are shell scripts on some systems. */
export function tool(packageName, args, options) {
  const folder = join(root, 'node_modules', packageName)
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return run(process.execPath, [join(folder, typeof bin === 'string' ? bin : Object.values(bin)[0]), ...args], options)
}

/** The npm that started us, else the one on the path. */
export function npm(args, options) {
  const started = process.env.npm_execpath
  if (started?.endsWith('.js')) return run(process.execPath, [started, ...args], options)
  return process.platform === 'win32' ? run('cmd', ['/c', 'npm', ...args], options) : run('npm', args, options)
}

/** Ends the process with one line for what is explained, with the stack for what is not. */
export async function main(body) {
  try {
    await body()
  } catch (error) {
    say(error instanceof ScriptError ? error.message : error)
    process.exit(1)
  }
}

/** True when this file is the one that was started, and not imported by another script. */
export function isMain(url) {
  return process.argv[1] !== undefined && fileURLToPath(url) === realpathSync(process.argv[1])
}
