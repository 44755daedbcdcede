import { posix } from 'node:path'
import type { FileHandle, Files, FileStat, OpenMode } from '../base/files.ts'
import { directoryOf } from '../base/files.ts'

type Pending =
  | { readonly kind: 'write'; readonly position: number; readonly bytes: Uint8Array }
  | { readonly kind: 'truncate'; readonly size: number }

/** One change of names, atomic on every file system: a creation, a removal, or both halves of a rename. */
type NameChange = readonly { readonly path: string; readonly node: Node | undefined }[]

/** What stopped the program in a crash test. Every call on the files of a crashed program fails with it. */
export class SimulatedCrash extends Error {
  constructor() {
    super('simulated crash')
    this.name = 'SimulatedCrash'
  }
}

/** A crash around one call, or the error code that call fails with. */
export type Fault = 'crash-before' | 'crash-after' | 'crash-torn' | 'EIO' | 'ENOSPC' | 'EACCES' | 'EMFILE'

/**
 * A disk that keeps only what it promised: data after `sync`, names after `syncDirectory`. `crash()` gives the disk a
 * machine would find after a power cut, with unsynced writes lost, torn or kept in any combination; `kill()` the one
 * after `kill -9`, where the system keeps everything written.
 */
export class MemoryFiles implements Files {
  #names = new Map<string, Node>()
  #durableNames = new Map<string, Node>()
  #nameChanges = new Map<string, NameChange[]>()
  #crashed = false
  #operations = 0
  #fault: { readonly at: number; readonly fault: Fault } | undefined
  #freeBytes = Number.POSITIVE_INFINITY
  #isOpeningRefused = false
  readonly #now: () => number

  constructor(options: { readonly now?: () => number } = {}) {
    this.#now = options.now ?? (() => 0)
    const root = new Node('directory', 0o755, 0)
    this.#names.set('/', root)
    this.#durableNames.set('/', root)
  }

  /** How many changing calls (write, sync, truncate, create, rename, remove, directory sync) were made so far. */
  get operations(): number {
    return this.#operations
  }

  get isCrashed(): boolean {
    return this.#crashed
  }

  /** The changing call with this number (counted from 0) fails as said; every call after a crash fails too. */
  injectFault(at: number, fault: Fault): void {
    this.#fault = { at, fault }
  }

  /** The disk has this much space left from now on: what does not fit fails with ENOSPC. */
  limitSpace(bytes: number): void {
    this.#freeBytes = bytes
  }

  /** No further file can be opened, until this is called with false: that fails with EMFILE. */
  refuseOpening(isRefused: boolean): void {
    this.#isOpeningRefused = isRefused
  }

  /** Stops the program: calls under way and later ones fail with `SimulatedCrash`. */
  stop(): void {
    this.#crashed = true
  }

  /** The disk after a power cut. Without `random` everything unsynced is lost; with it each piece is kept, lost or torn. */
  crash(random?: () => number): MemoryFiles {
    this.#crashed = true
    const after = new MemoryFiles({ now: this.#now })
    const names = new Map(this.#durableNames)
    for (const changes of this.#nameChanges.values()) {
      for (const change of changes) {
        if (random !== undefined && random() < 0.5) applyNames(names, change)
      }
    }
    const copies = new Map<Node, Node>()
    for (const [path, node] of names) {
      const copy = copies.get(node) ?? node.afterPowerCut(random)
      copies.set(node, copy)
      after.#names.set(path, copy)
      after.#durableNames.set(path, copy)
    }
    dropUnreachable(after.#names)
    dropUnreachable(after.#durableNames)
    return after
  }

  /** The disk after the process alone died. */
  kill(): MemoryFiles {
    this.#crashed = true
    const after = new MemoryFiles({ now: this.#now })
    const copies = new Map<Node, Node>()
    const copyOf = (node: Node): Node => {
      const copy = copies.get(node) ?? node.afterKill()
      copies.set(node, copy)
      return copy
    }
    for (const [path, node] of this.#names) after.#names.set(path, copyOf(node))
    for (const [path, node] of this.#durableNames) after.#durableNames.set(path, copyOf(node))
    for (const [directory, changes] of this.#nameChanges) {
      after.#nameChanges.set(
        directory,
        changes.map((change) => change.map(({ path, node }) => ({ path, node: node && copyOf(node) }))),
      )
    }
    return after
  }

  /** Whole content, for assertions. */
  text(path: string): string | undefined {
    const node = this.#names.get(path)
    return node?.kind === 'file' ? new TextDecoder().decode(node.content()) : undefined
  }

  /** Puts a file there, durable, as if it had always been. */
  plant(path: string, content: string | Uint8Array): void {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
    const node = new Node('file', 0o600, this.#now())
    node.write(0, bytes, this.#now())
    node.sync()
    for (let parent = directoryOf(path); !this.#names.has(parent); parent = directoryOf(parent)) {
      const directory = new Node('directory', 0o700, this.#now())
      this.#names.set(parent, directory)
      this.#durableNames.set(parent, directory)
    }
    this.#names.set(path, node)
    this.#durableNames.set(path, node)
  }

  async open(path: string, mode: OpenMode, permissions = 0o600): Promise<FileHandle> {
    this.#checkAlive()
    if (this.#isOpeningRefused) throw errno('EMFILE', path)
    let node = this.#names.get(path)
    if (node?.kind === 'directory') throw errno('EISDIR', path)
    if (node !== undefined && mode === 'create') throw errno('EEXIST', path)
    if (node === undefined) {
      if (mode === 'read' || mode === 'update') throw errno('ENOENT', path)
      this.#requireDirectory(directoryOf(path))
      const created = new Node('file', permissions, this.#now())
      this.#change(() => this.#rename([{ path, node: created }], directoryOf(path)))
      node = created
    }
    return this.#handle(path, node, mode)
  }

  async stat(path: string): Promise<FileStat | undefined> {
    return this.statSync(path)
  }

  statSync(path: string): FileStat | undefined {
    this.#checkAlive()
    return this.#names.get(path)?.stat()
  }

  async list(directory: string): Promise<readonly string[]> {
    this.#checkAlive()
    const prefix = directory === '/' ? '/' : `${directory}/`
    return [...this.#names.keys()]
      .filter((path) => path !== '/' && path.startsWith(prefix) && !path.slice(prefix.length).includes('/'))
      .map((path) => path.slice(prefix.length))
      .sort()
  }

  async makeDirectory(path: string, permissions = 0o700): Promise<void> {
    this.#checkAlive()
    if (path === '/' || this.#names.get(path)?.kind === 'directory') return
    if (this.#names.has(path)) throw errno('EEXIST', path)
    await this.makeDirectory(directoryOf(path), permissions)
    this.#change(() =>
      this.#rename([{ path, node: new Node('directory', permissions, this.#now()) }], directoryOf(path)),
    )
  }

  async rename(from: string, to: string): Promise<void> {
    this.#checkAlive()
    const node = this.#names.get(from)
    if (node === undefined) throw errno('ENOENT', from)
    this.#requireDirectory(directoryOf(to))
    const moved = [...this.#names]
      .filter(([path]) => path.startsWith(`${from}/`))
      .flatMap(([path, child]) => [
        { path, node: undefined },
        { path: to + path.slice(from.length), node: child },
      ])
    this.#change(() => this.#rename([{ path: from, node: undefined }, { path: to, node }, ...moved], directoryOf(to)))
  }

  async remove(path: string): Promise<void> {
    this.#checkAlive()
    const node = this.#names.get(path)
    if (node === undefined) return
    if (node.kind === 'directory') throw errno('EISDIR', path)
    const isLastName = ![...this.#names].some(([name, other]) => other === node && name !== path)
    if (isLastName) this.#freeBytes += node.size
    this.#change(() => this.#rename([{ path, node: undefined }], directoryOf(path)))
  }

  async removeDirectory(path: string): Promise<void> {
    this.#checkAlive()
    const inside = [...this.#names.keys()].filter((name) => name === path || name.startsWith(`${path}/`))
    if (inside.length === 0) return
    this.#change(() =>
      this.#rename(
        inside.map((name) => ({ path: name, node: undefined })),
        directoryOf(path),
      ),
    )
  }

  async syncDirectory(path: string): Promise<void> {
    this.#checkAlive()
    this.#requireDirectory(path)
    this.#change(() => {
      for (const change of this.#nameChanges.get(path) ?? []) applyNames(this.#durableNames, change)
      this.#nameChanges.delete(path)
    })
  }

  async realPath(path: string): Promise<string> {
    this.#checkAlive()
    const real = posix.normalize(path)
    if (!this.#names.has(real)) throw errno('ENOENT', path)
    return real
  }

  #handle(path: string, node: Node, mode: OpenMode): FileHandle {
    let closed = false
    const check = (): void => {
      this.#checkAlive()
      if (closed) throw errno('EBADF', path)
    }
    return {
      path,
      read: async (position, length) => {
        check()
        return node.content().slice(position, position + length)
      },
      readNow: (position, length) => {
        check()
        return node.content().slice(position, position + length)
      },
      readInto: async (target, position) => {
        check()
        const bytes = node.content().subarray(position, position + target.length)
        target.set(bytes)
        return bytes.length
      },
      write: async (bytes, position) => {
        check()
        if (mode === 'read') throw errno('EBADF', path)
        const data = typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes
        const at = mode === 'append' || position === undefined ? node.size : position
        // Writing over what is there takes no space.
        const inPlace = Math.max(0, Math.min(data.length, node.size - at))
        const room = Math.min(data.length, inPlace + Math.max(0, this.#freeBytes))
        this.#freeBytes -= room - inPlace
        this.#change(
          () => node.write(at, data.slice(0, room), this.#now()),
          () => node.write(at, data.slice(0, Math.floor(room / 2)), this.#now()),
        )
        if (room < data.length) throw errno('ENOSPC', path)
      },
      truncate: async (size) => {
        check()
        this.#freeBytes += Math.max(0, node.size - size)
        this.#change(() => node.truncate(size, this.#now()))
      },
      sync: async () => {
        check()
        this.#change(() => node.sync())
      },
      stat: () => {
        check()
        return node.stat()
      },
      close: async () => {
        closed = true
      },
    }
  }

  #rename(change: NameChange, directory: string): void {
    applyNames(this.#names, change)
    const changes = this.#nameChanges.get(directory) ?? []
    changes.push(change)
    this.#nameChanges.set(directory, changes)
  }

  #change(apply: () => void, applyTorn?: () => void): void {
    const fault = this.#operations++ === this.#fault?.at ? this.#fault.fault : undefined
    if (fault === undefined) return apply()
    if (fault === 'crash-before' || fault === 'crash-after' || fault === 'crash-torn') {
      if (fault === 'crash-after') apply()
      if (fault === 'crash-torn') applyTorn?.()
      this.#crashed = true
      throw new SimulatedCrash()
    }
    throw errno(fault, 'injected')
  }

  #requireDirectory(path: string): void {
    if (this.#names.get(path)?.kind !== 'directory') throw errno('ENOENT', path)
  }

  #checkAlive(): void {
    if (this.#crashed) throw new SimulatedCrash()
  }
}

let nextIdentity = 1

class Node {
  readonly kind: 'file' | 'directory'
  readonly #identity = nextIdentity++
  readonly #permissions: number
  #modifiedAt: number
  #bytes = new Uint8Array(0)
  #size = 0
  #durable = new Uint8Array(0)
  #durableSize = 0
  #pending: Pending[] = []

  constructor(kind: 'file' | 'directory', permissions: number, modifiedAt: number) {
    this.kind = kind
    this.#permissions = permissions
    this.#modifiedAt = modifiedAt
  }

  get size(): number {
    return this.#size
  }

  content(): Uint8Array {
    return this.#bytes.subarray(0, this.#size)
  }

  stat(): FileStat {
    return {
      kind: this.kind,
      size: this.#size,
      modifiedAt: this.#modifiedAt,
      permissions: this.#permissions,
      belongsToOthers: false,
      identity: `memory:${this.#identity}`,
    }
  }

  write(position: number, bytes: Uint8Array, at: number): void {
    this.#bytes = place(this.#bytes, position, bytes)
    this.#size = Math.max(this.#size, position + bytes.length)
    this.#modifiedAt = at
    this.#pending.push({ kind: 'write', position, bytes })
  }

  truncate(size: number, at: number): void {
    this.#bytes = resize(this.#bytes, this.#size, size)
    this.#size = size
    this.#modifiedAt = at
    this.#pending.push({ kind: 'truncate', size })
  }

  sync(): void {
    for (const change of this.#pending) this.#applyDurable(change)
    this.#pending = []
  }

  afterPowerCut(random: (() => number) | undefined): Node {
    const copy = new Node(this.kind, this.#permissions, this.#modifiedAt)
    copy.#durable = this.#durable.slice()
    copy.#durableSize = this.#durableSize
    for (const change of this.#pending) {
      const fate = random === undefined ? 0 : random()
      if (fate < 0.4) continue
      const torn = fate > 0.8 && change.kind === 'write' && random !== undefined
      for (const piece of torn ? tear(change, copy.#durableSize, random) : [change]) copy.#applyDurable(piece)
    }
    copy.#bytes = copy.#durable.slice()
    copy.#size = copy.#durableSize
    return copy
  }

  afterKill(): Node {
    const copy = new Node(this.kind, this.#permissions, this.#modifiedAt)
    copy.#durable = this.#durable.slice()
    copy.#durableSize = this.#durableSize
    copy.#bytes = this.#bytes.slice()
    copy.#size = this.#size
    copy.#pending = [...this.#pending]
    return copy
  }

  #applyDurable(change: Pending): void {
    if (change.kind === 'write') {
      this.#durable = place(this.#durable, change.position, change.bytes)
      this.#durableSize = Math.max(this.#durableSize, change.position + change.bytes.length)
    } else {
      this.#durable = resize(this.#durable, this.#durableSize, change.size)
      this.#durableSize = change.size
    }
  }
}

const SECTOR_BYTES = 64

/** What a power cut left of one write: behind the end of the file a beginning, inside it any of its sectors. */
function tear(
  write: Extract<Pending, { kind: 'write' }>,
  fileSize: number,
  random: () => number,
): readonly Extract<Pending, { kind: 'write' }>[] {
  const { position, bytes } = write
  const isInPlace = position + bytes.length <= fileSize
  if (!isInPlace) return [{ ...write, bytes: bytes.slice(0, Math.floor(random() * bytes.length)) }]
  const sectors: Extract<Pending, { kind: 'write' }>[] = []
  for (let at = 0; at < bytes.length;) {
    // Sectors lie where they lie in the file, not where the write begins.
    const end = Math.min(bytes.length, at + SECTOR_BYTES - ((position + at) % SECTOR_BYTES))
    if (random() < 0.5) sectors.push({ ...write, position: position + at, bytes: bytes.slice(at, end) })
    at = end
  }
  return sectors
}

function place(target: Uint8Array<ArrayBuffer>, position: number, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const end = position + bytes.length
  let room = target
  if (end > target.length) {
    room = new Uint8Array(Math.max(end, target.length * 2))
    room.set(target)
  }
  room.set(bytes, position)
  return room
}

function resize(target: Uint8Array<ArrayBuffer>, from: number, to: number): Uint8Array<ArrayBuffer> {
  if (to < from) {
    target.fill(0, to, from)
    return target
  }
  return place(target, from, new Uint8Array(to - from))
}

function applyNames(names: Map<string, Node>, change: NameChange): void {
  for (const { path, node } of change) {
    if (node === undefined) names.delete(path)
    else names.set(path, node)
  }
}

/** A file whose folder's own name was lost is lost with it. */
function dropUnreachable(names: Map<string, Node>): void {
  for (const path of [...names.keys()].sort()) {
    if (path !== '/' && names.get(directoryOf(path))?.kind !== 'directory') names.delete(path)
  }
}

function errno(code: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${path}`), { code, path })
}
