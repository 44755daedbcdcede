import { createHmac } from 'node:crypto'
import type { Ids } from '../../base/ids.ts'
import type { IssuedValues } from '../rules/rule.ts'

/** Not a secret: it only tells the simulator's own signatures from everybody else's, also after a restart. */
const KEY = 'clew provider simulator'
const NONCE_HEX = 24
const BEFORE = '00'
const LED_TO = '01'
const ALONE = 'ff'

/**
 * Signatures and ids that carry their own proof, so that the simulator recognises what it issued without remembering
 * it: memory stays bounded, and a conversation survives the simulator's restart.
 */
export class Seals implements IssuedValues {
  readonly #ids: Ids

  constructor(ids: Ids) {
    this.#ids = ids
  }

  /** Base64, as Anthropic and Google write signatures. */
  sign(content: string): string {
    const nonce = this.#ids.hex(NONCE_HEX)
    return Buffer.concat([Buffer.from(nonce, 'hex'), digest(nonce, content)]).toString('base64')
  }

  /** As OpenAI writes encrypted content. */
  seal(): string {
    return `gAAAAA${Buffer.from(this.sign(''), 'base64').toString('base64url')}`
  }

  isGenuine(signature: string, content: string): boolean {
    const bytes = Buffer.from(signature.replace(/^gAAAAA/, ''), 'base64')
    const nonce = bytes.subarray(0, NONCE_HEX / 2).toString('hex')
    return bytes.length === NONCE_HEX / 2 + 32 && bytes.subarray(NONCE_HEX / 2).equals(digest(nonce, content))
  }

  /** Ids of a reasoning item and of the item it leads to share their digits. */
  itemIds(prefix: string, afterReasoning: string | undefined): string {
    if (afterReasoning !== undefined) return `${prefix}_${afterReasoning.slice(3, -2)}${LED_TO}`
    return `${prefix}_${this.#ids.hex(46)}${prefix === 'rs' ? BEFORE : ALONE}`
  }

  reasoningBefore(itemId: string): string | undefined {
    const match = /^(?:msg|fc)_([0-9a-f]{46})01$/.exec(itemId)
    return match === null ? undefined : `rs_${match[1]}${BEFORE}`
  }
}

function digest(nonce: string, content: string): Buffer {
  return createHmac('sha256', KEY).update(nonce).update(content).digest()
}
