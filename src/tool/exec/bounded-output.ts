import { withoutTrailing } from '../../base/text.ts'

/** The beginning and the end of a stream of any length, in bounded memory. */
export class BoundedOutput {
  readonly #maxHead: number
  readonly #maxTail: number
  readonly #head: Uint8Array[] = []
  #headBytes = 0
  #tail: Uint8Array[] = []
  #tailBytes = 0
  #total = 0

  constructor(maxBytes: number) {
    this.#maxTail = Math.floor(maxBytes * 0.5)
    this.#maxHead = maxBytes - this.#maxTail
  }

  get totalBytes(): number {
    return this.#total
  }

  add(bytes: Uint8Array): void {
    this.#total += bytes.length
    const forHead = bytes.subarray(0, this.#maxHead - this.#headBytes)
    if (forHead.length > 0) {
      this.#head.push(forHead)
      this.#headBytes += forHead.length
    }
    this.#addToTail(bytes.subarray(forHead.length))
  }

  /** Characters that were cut in two are left out with the rest. */
  text(): string {
    const left = this.#total - this.#headBytes - Math.min(this.#tailBytes, this.#maxTail)
    const head = Buffer.concat(this.#head)
    const tail = Buffer.concat(this.#tail).subarray(-this.#maxTail || undefined)
    if (left <= 0) return Buffer.concat([head, tail]).toString('utf8')
    const start = withoutTrailing(head.toString('utf8'), '\ufffd')
    const end = tail.toString('utf8').replace(/^\ufffd+/, '')
    return `${start}\n[… ${left} bytes left out …]\n${end}`
  }

  #addToTail(bytes: Uint8Array): void {
    if (bytes.length === 0 || this.#maxTail === 0) return
    this.#tail.push(bytes)
    this.#tailBytes += bytes.length
    if (this.#tailBytes < this.#maxTail * 2) return
    const kept = Buffer.concat(this.#tail).subarray(-this.#maxTail)
    // A copy: the slice would keep everything alive.
    this.#tail = [Uint8Array.from(kept)]
    this.#tailBytes = kept.length
  }
}
