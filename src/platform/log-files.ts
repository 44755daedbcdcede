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
  const follower = new LineFollower(path)
  const look = (): void => {
    for (const line of follower.look()) onLine(line)
  }
  if (existsSync(path)) watch(path, look)
  setInterval(look, 1_000)
  return new Promise(() => undefined)
}

/** What is added to a file from now on, also across the moment in which it is moved aside. */
export class LineFollower {
  readonly #path: string
  #identity: number | undefined
  #seen: number
  #rest = ''

  constructor(path: string) {
    this.#path = path
    const stat = statSync(path, { throwIfNoEntry: false })
    this.#identity = stat?.ino
    this.#seen = stat?.size ?? 0
  }

  look(): readonly string[] {
    const stat = statSync(this.#path, { throwIfNoEntry: false })
    if (stat === undefined) return []
    const lines: string[] = []
    if (stat.ino !== this.#identity) {
      // What was added to the old one since the last look, before it was moved.
      const moved = `${this.#path}.1`
      const before = statSync(moved, { throwIfNoEntry: false })
      if (before !== undefined && before.ino === this.#identity) lines.push(...this.#read(moved))
      this.#identity = stat.ino
      this.#seen = 0
    } else if (stat.size < this.#seen) this.#seen = 0
    if (stat.size > this.#seen) lines.push(...this.#read(this.#path))
    return lines
  }

  #read(path: string): readonly string[] {
    const bytes = readFileSync(path)
    const lines = (this.#rest + bytes.subarray(this.#seen).toString('utf8')).split('\n')
    this.#seen = bytes.length
    this.#rest = lines.pop() ?? ''
    return lines
  }
}
