import type { ProcessIdentity, Processes } from '../base/processes.ts'

/** Processes as the test says they are: everyone named lives until `die`. */
export class ScriptedProcesses implements Processes {
  readonly self: ProcessIdentity
  readonly #dead = new Set<string>()
  readonly #onExit = new Set<{ readonly path: string }>()

  constructor(self: Partial<ProcessIdentity> = {}) {
    this.self = { pid: 1_000, startedAt: '1', host: 'test-host', ...self }
  }

  isAlive(process: ProcessIdentity): boolean {
    return !this.#dead.has(keyOf(process))
  }

  die(process: ProcessIdentity): void {
    this.#dead.add(keyOf(process))
  }

  /** The next life of the same program: this one and those before it are dead, whatever locks they held. */
  successor(): ScriptedProcesses {
    const next = new ScriptedProcesses({ ...this.self, pid: this.self.pid + 1 })
    for (const dead of this.#dead) next.#dead.add(dead)
    next.die(this.self)
    return next
  }

  onExit(path: string): () => void {
    const leftover = { path }
    this.#onExit.add(leftover)
    return () => this.#onExit.delete(leftover)
  }

  /** What a real exit would remove now; empty when everything was given back. */
  get leftovers(): readonly string[] {
    return [...this.#onExit].map(({ path }) => path)
  }
}

function keyOf({ pid, startedAt, host }: ProcessIdentity): string {
  return `${host}:${pid}:${startedAt}`
}
