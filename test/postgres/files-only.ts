/**
 * What the suites of the whole gateway do not repeat on PostgreSQL, and why: files as a whole, and cases by the beginning
 * of their full name.
 *
 * Of the suites with real processes, `test/system`, those run there that ask the storage something which no other suite
 * asks it: the commands, with and without a gateway; what is answered after kill -9; messages that end their node. The
 * rest would cost minutes and repeat: sockets, SDKs and doors are in `test/flow` and `cluster.test.ts` on PostgreSQL,
 * kill -9 in `cluster*.test.ts` and the chaos run, and the storage has no part in installing, starting and stopping,
 * documents, examples, the doctor and the terminal.
 */
export const FILES_ONLY_SUITES: Readonly<Record<string, string>> = {
  'test/flow/corrupt-homes.test.ts': 'damages files of the journal and the index',
  'test/flow/database-away.test.ts': 'opens a PostgreSQL of its own in either run',
  'test/flow/descriptors-gone.test.ts': 'takes the file descriptors away that the journal needs',
  'test/flow/disk-full.test.ts': 'fills the disk that the journal is on; a full database is in database-away.test.ts',
  'test/flow/lost-files.test.ts': 'removes and cuts files of the journal',
  'test/flow/planted-homes.test.ts': 'plants rows in sessions.json, and remains of a crash, that lead out of the home',
  'test/flow/round-trips.test.ts': 'opens a PostgreSQL of its own in either run',
  'test/flow/rows-on-disk.test.ts': 'counts reads of the files that rows of sessions are in',
  'test/flow/sessions-json.test.ts': 'is about the file sessions.json',
  'test/flow/upgrade.test.ts': 'opens homes that earlier versions wrote; rolling-upgrade.test.ts does it on PostgreSQL',
  'test/conformance/xiaoyi/naive.test.ts': 'judges a client without a gateway',
  'test/conformance/xiaoyi/ours.test.ts': 'judges the channel alone, without a storage',
}

const SESSIONS_JSON = 'is about the file sessions.json'
const LEARNED_ALIKE = 'what is learned of this server is stored as for llama.cpp, or as for the silent one'
const MEMORY_OF_ONE_PROCESS = 'is about what one process holds in memory; rows of the database end by age'

export const FILES_ONLY_CASES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'test/flow/dashboard-shapes.test.ts': {
    'a list of conversations > opens no transcript': 'counts which files are opened',
  },
  'test/flow/home-lock.test.ts': {
    'a gateway whose home another process took over > accepts nothing more':
      'the journal looks at the lock of its home before each write; rows of the database are fenced by epochs',
  },
  'test/flow/learned-window.test.ts': {
    'a server whose window is smaller than believed, refusing as vllm does': LEARNED_ALIKE,
    'a server whose window is smaller than believed, refusing as lm-studio does': LEARNED_ALIKE,
    'a server whose window is smaller than believed, refusing as ollama does': LEARNED_ALIKE,
  },
  'test/flow/remembered-limits.test.ts': {
    'a flood of things to remember stays below its ceiling > messages and their answers': MEMORY_OF_ONE_PROCESS,
    'a flood of things to remember stays below its ceiling > idempotency keys': MEMORY_OF_ONE_PROCESS,
    'a flood of things to remember stays below its ceiling > rows of the session index': MEMORY_OF_ONE_PROCESS,
  },
  'test/flow/start-errors.test.ts': { 'a disk that fills up': 'fills the disk that the journal is on' },
  'test/flow/webhook-frames.test.ts': { 'an index another program wrote': SESSIONS_JSON },
  'test/flow/xiaoyi.test.ts': {
    'clearContext > waits for the disk once': 'counts what is written to files',
    'clearContext > is not answered with success when it cannot be made durable': 'fills the disk',
  },
  'test/seeds/session-control.test.ts': { '001: what lies on the disk': SESSIONS_JSON },
}
