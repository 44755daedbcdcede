import type { Channel } from '../channel/channel.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionEvent } from '../core/event.ts'
import type { SessionKey } from '../core/ids.ts'
import type { AcceptedMessage, DeliveryFate, Reply } from '../core/inbound.ts'

/** Hears of everything without taking part in it; its methods must not throw. */
export interface GatewayWatch {
  accepted(message: AcceptedMessage): void
  observe(event: SessionEvent, message: AcceptedMessage): void
  /** An answer is on its way to its channel, for the first time or again. */
  answered(reply: Reply): void
  /** A conversation's row changed, or went. */
  changed(key: SessionKey): void
}

/** The channels of a gateway by their names: events and answers reach a channel here and nowhere else. */
export class Channels {
  readonly #byName = new Map<string, Channel>()
  readonly #watch: GatewayWatch | undefined

  constructor(watch?: GatewayWatch) {
    this.#watch = watch
  }

  add(channel: Channel): void {
    const { name } = channel
    if (this.#byName.has(name))
      throw new GatewayError('PLUGIN_INVALID', `two channels are called "${name}"`, { channel: name })
    this.#byName.set(name, channel)
  }

  get(name: string): Channel | undefined {
    return this.#byName.get(name)
  }

  all(): readonly Channel[] {
    return [...this.#byName.values()]
  }

  observe(event: SessionEvent, message: AcceptedMessage): void {
    this.#byName.get(message.channel)?.observe(event, message)
    this.#watch?.observe(event, message)
  }

  async deliver(reply: Reply): Promise<DeliveryFate> {
    this.#watch?.answered(reply)
    return (await this.#byName.get(reply.channel)?.deliver(reply)) ?? 'waiting'
  }
}
