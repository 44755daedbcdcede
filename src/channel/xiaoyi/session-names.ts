import type { RouteFields } from '../../core/inbound.ts'
import { Remembered } from './remembered.ts'
import type { XiaoyiState } from './state.ts'

export interface SessionNamesDeps {
  readonly state: XiaoyiState
  readonly maxRemembered: number
  keyFor(route: RouteFields): string
  /** Something was learnt that a restart must not forget. */
  onLearnt(saving: Promise<void>): void
}

/** What a frame tells about its session beside its content. */
export interface Told {
  readonly sessionId: string
  readonly topSessionId?: string
}

/** Which conversation an id means, over which link it spoke last, and where its person can be notified. */
export class SessionNames {
  readonly #deps: SessionNamesDeps
  readonly #links: Remembered<number>

  constructor(deps: SessionNamesDeps) {
    this.#deps = deps
    this.#links = new Remembered(deps.maxRemembered)
  }

  /** Every frame binds its session to its link; some also tell another name of it, or where to push. */
  learn({ sessionId, topSessionId }: Told, link: number, pushId?: string): void {
    const { state, onLearnt } = this.#deps
    this.#links.set(sessionId, link)
    if (topSessionId !== undefined && topSessionId !== sessionId)
      onLearnt(state.set('aliases', topSessionId, sessionId))
    if (pushId !== undefined) onLearnt(state.set('pushIds', sessionId, pushId))
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
    return { sessionId, key: this.#deps.keyFor(routeOf(sessionId)) }
  }
}

export function routeOf(sessionId: string): RouteFields {
  return { peerKind: 'dm', peerId: sessionId, preserveCase: true }
}
