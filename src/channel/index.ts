export type { Acceptance, Channel, ControlResult, Intake } from './channel.ts'
export type {
  AcceptedMessage,
  Attachment,
  Caller,
  ControlCommand,
  DeliveryFate,
  InboundMessage,
  Reply,
  ReplyContent,
  RouteFields,
  SessionRecord,
} from '../core/inbound.ts'
export type { SessionEvent, TurnEvent } from '../core/event.ts'
export type { RunId, SessionId, SessionKey } from '../core/ids.ts'
