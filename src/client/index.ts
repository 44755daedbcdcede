export { ClewClient } from './client.ts'
export type { AskOptions, ClientOptions, ClientState, FileToSend, SessionInfo } from './client.ts'
export { Answer, ClewError } from './answer.ts'
export type { AnswerEvent } from './answer.ts'
