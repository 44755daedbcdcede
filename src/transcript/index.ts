export { openFileStore, type FileStoreOptions, type FileTranscriptStore } from './file-store.ts'
export { createMemoryStore, type MemoryStoreOptions } from './memory-store.ts'
export {
  checkTranscript,
  repairTranscript,
  type RepairPorts,
  type RepairReport,
  type TranscriptReport,
} from './check.ts'
export type { WriteHooks } from './guard.ts'
export { DEFAULT_LIMITS, type TranscriptLimits } from './limits.ts'
export type { BlobReference, CappedFields } from './cap-tool-result.ts'
export { MISSING_RESULT } from './open-calls.ts'
export type { AppendOptions, RepairNote, Transcript, TranscriptContext, TranscriptStore } from './store.ts'
export { TranscriptTopic } from './topic.ts'
