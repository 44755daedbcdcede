import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  watch,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

export const LOG_FILE = 'clew.log'

/** One file in use and so many before it; the oldest is overwritten. */
const MAX_FILES = 5
const MAX_FILE_BYTES = 5 * 1024 * 1024
const OWNER_ONLY = 0o600

/**
 * Appends lines to `clew.log` and moves it aside when it is full. A log that cannot be written (a full disk) is given up
 * for that line: the gateway goes on.
 */
export class LogFiles {
  readonly #directory: string
  #descriptor: number | undefined
  #bytes = 0

  constructor(directory: string) {
    this.#directory = directory
  }

  write(line: string): void {
    try {
      const descriptor = this.#descriptor ?? this.#open()
      const bytes = writeSync(descriptor, line)
      this.#bytes += bytes
      if (this.#bytes > MAX_FILE_BYTES) this.#rotate()
    } catch {
      this.close()
    }
  }

  close(): void {
    const descriptor = this.#descriptor
    this.#descriptor = undefined
    if (descriptor !== undefined) closeSync(descriptor)
  }

  #open(): number {
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
    const path = join(this.#directory, LOG_FILE)
    const descriptor = openSync(path, 'a', OWNER_ONLY)
    this.#descriptor = descriptor
    this.#bytes = statSync(path).size
    return descriptor
  }

  #rotate(): void {
    this.close()
    const path = join(this.#directory, LOG_FILE)
    for (let number = MAX_FILES - 1; number >= 1; number--) {
      const older = number === 1 ? path : `${path}.${number - 1}`
      if (existsSync(older)) renameSync(older, `${path}.${number}`)
    }
  }
}

/** The latest lines of all files, oldest first. */
export function readLogLines(directory: string, count: number): readonly string[] {
  const path = join(directory, LOG_FILE)
  let lines: string[] = []
  for (const name of [path, ...Array.from({ length: MAX_FILES - 1 }, (_, at) => `${path}.${at + 1}`)]) {
    if (lines.length >= count || !existsSync(name)) break
    lines = [
      ...readFileSync(name, 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
      ...lines,
    ]
  }
  return lines.slice(-count)
}

/** Calls back for each line that is added, until the process ends; a file moved aside is followed by the new one. */
export function followFile(path: string, onLine: (line: string) => void): Promise<never> {
  let seen = existsSync(path) ? statSync(path).size : 0
  let rest = ''
  const look = (): void => {
    if (!existsSync(path)) return
    const { size } = statSync(path)
    if (size < seen) seen = 0
    if (size === seen) return
    const text = readFileSync(path).subarray(seen).toString('utf8')
    seen = size
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  }
  watch(path, look)
  setInterval(look, 1_000)
  return new Promise(() => undefined)
}
