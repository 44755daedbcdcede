export type { Acceptance, Channel, ControlResult, Intake } from './channel.ts'
export type { Attachment, ControlCommand, DeliveryFate, InboundMessage, Reply, ReplyContent } from '../core/inbound.ts'
export type { SessionEvent, TurnEvent } from '../core/event.ts'
export type { SessionKey } from '../core/ids.ts'
