import type { RouteFields } from '../../core/inbound.ts'
import { BoundedMap } from './bounded-map.ts'
import type { XiaoyiState } from './state.ts'

export interface PhoneSessionsDeps {
  readonly state: XiaoyiState
  readonly maxRemembered: number
  keyFor(route: RouteFields): string
  /** Something is being stored that a restart must not forget. */
  onAliasSaved(saving: Promise<void>): void
}

/** What a frame says of its session besides its content. */
export interface SessionIds {
  readonly sessionId: string
  readonly topSessionId?: string
}

/** Which conversation an id means, over which link it spoke last, and where its person can be notified. */
export class PhoneSessions {
  readonly #deps: PhoneSessionsDeps
  readonly #links: BoundedMap<number>

  constructor(deps: PhoneSessionsDeps) {
    this.#deps = deps
    this.#links = new BoundedMap(deps.maxRemembered)
  }

  /** Every frame binds its session to its link; some also give another name of it, or where to push. */
  observe({ sessionId, topSessionId }: SessionIds, link: number, pushId?: string): void {
    const { state, onAliasSaved } = this.#deps
    this.#links.set(sessionId, link)
    if (topSessionId !== undefined && topSessionId !== sessionId)
      onAliasSaved(state.set('aliases', topSessionId, sessionId))
    if (pushId !== undefined) onAliasSaved(state.set('pushIds', sessionId, pushId))
  }

  linkOf(sessionId: string): number | undefined {
    return this.#links.get(sessionId)
  }

  /** A cleared conversation has no link until it speaks again. */
  unbind(sessionId: string): void {
    this.#links.delete(sessionId)
  }

  /** Commands may name the id of this launch of the app instead of the conversation. */
  resolve(named: string): { readonly sessionId: string; readonly key: string } {
    const sessionId = this.#deps.state.get('aliases', named) ?? named
    return { sessionId, key: this.#deps.keyFor(phoneRouteOf(sessionId)) }
  }
}

export function phoneRouteOf(sessionId: string): RouteFields {
  return { peerKind: 'dm', peerId: sessionId, preserveCase: true }
}
