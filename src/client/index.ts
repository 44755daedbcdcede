export { ClewClient } from './client.ts'
export type {
  AskOptions,
  ClientOptions,
  ClientState,
  FileToSend,
  SessionInfo,
  WebSocketConstructor,
  WebSocketLike,
} from './client.ts'
export { Answer, ClewError } from './answer.ts'
export type { AnswerEvent } from './answer.ts'
export type { FrameUsage } from './frames.ts'
