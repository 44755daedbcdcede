import { SILENCING } from './faults.ts'
import type { History, SeenFrame, SentMessage } from './history.ts'
import type { EntryRow, MessageRow, Tables } from './tables.ts'

/** What a run came to: broken promises, one line each, and how much was judged. */
export interface Judgement {
  readonly violations: readonly string[]
  readonly acknowledged: number
  readonly answered: number
  /** Acknowledged, without an answer that a client saw, and shown as such in the tables. */
  readonly unknown: number
  readonly resets: number
  readonly entries: number
}

/**
 * Judges by what clients saw and by the tables, and knows nothing else of the gateway: every acknowledged message has one
 * answer, numbers are given once, sessions keep the order of acceptance, transcripts are whole, a reset ends what was
 * before it.
 */
export function judge(history: History, tables: Tables): Judgement {
  const found: string[] = []
  const lines = readTranscripts(tables, found)
  const rows = new Map(tables.messages.map((row) => [row.run, row]))
  const terminal = terminalFrames(history)
  const counts = judgeAnswers(history, terminal, rows, found)
  judgeCodes(history, found)
  judgeRuns(history, found)
  judgeDeletes(history, lines, found)
  judgeNumbers(history.frames, found)
  judgeOrder(history, tables.messages, lines, found)
  judgeModelView(terminal, lines, history, found)
  judgeResets(history, tables, lines, found)
  return { violations: found, ...counts, resets: history.resets.length, entries: tables.entries.length }
}

type Terminal = ReadonlyMap<string, readonly SeenFrame[]>

/** Refusals name no run: nothing was stored, and the client sends again. */
function terminalFrames({ frames }: History): Terminal {
  const byMessage = new Map<string, SeenFrame[]>()
  for (const frame of frames) {
    if ((frame.type !== 'complete' && frame.type !== 'error') || frame.run === undefined) continue
    const name = `${frame.account} ${frame.messageId ?? ''}`
    byMessage.set(name, [...(byMessage.get(name) ?? []), frame])
  }
  return byMessage
}

function judgeAnswers(
  { sent, deletes }: History,
  terminal: Terminal,
  rows: ReadonlyMap<string, MessageRow>,
  found: string[],
): Pick<Judgement, 'acknowledged' | 'answered' | 'unknown'> {
  let [acknowledged, answered, unknown] = [0, 0, 0]
  for (const message of sent) {
    const frames = terminal.get(`${message.account} ${message.id}`) ?? []
    for (const run of new Set(frames.map((frame) => frame.run)))
      judgeCopies(
        message.id,
        frames.filter((frame) => frame.run === run),
        found,
      )
    if (message.acceptedAt === undefined) continue
    acknowledged++
    if (frames.length > 0) {
      answered++
      continue
    }
    const row = message.run === undefined ? undefined : rows.get(message.run)
    // A delete takes answers along that nobody has fetched.
    const mayBeDeleted =
      row === undefined &&
      deletes.some(({ session, confirmedAt = Infinity }) => session === message.session && confirmedAt > message.at)
    if (row?.state === 'unknown' || mayBeDeleted) unknown++
    else found.push(`${message.id} was acknowledged and has no answer (its row: ${row?.state ?? 'none'})`)
  }
  return { acknowledged, answered, unknown }
}

/** A message is given up when its node fell silent so often while it worked on it. */
const MOST_DEATHS = 2

/**
 * The model always answers in the end, so an error is a person's stop, or a message that was interrupted too often: so
 * many disturbances that can silence a node lie between its being sent and its answer.
 */
function judgeCodes({ sent, frames, disturbances }: History, found: string[]): void {
  const sentAt = new Map(sent.map(({ account, id, at }) => [`${account} ${id}`, at]))
  const known = new Set<string>()
  for (const { type, run, account, messageId, code, at } of frames) {
    if (type !== 'error' || run === undefined || known.has(run) || code === 'TURN_CANCELLED') continue
    known.add(run)
    const name = `${account} ${messageId}`
    const since = sentAt.get(name) ?? 0
    const silences = disturbances.filter((one) => SILENCING.has(one.name) && one.at > since && one.at < at).length
    if (code !== 'MESSAGE_POISONED' || silences < MOST_DEATHS)
      found.push(`${name} was accepted and answered with ${code} after ${silences} silences`)
  }
}

/**
 * However often and wherever it is sent, a message is one run: in its acknowledgements and in its answers. Only a delete
 * of its session makes it a new one, and each delete does so once: it was sent before the later run was seen, and was
 * not confirmed before the earlier one can have been accepted.
 */
function judgeRuns({ sent, frames, deletes }: History, found: string[]): void {
  const messages = new Map(sent.map((message) => [`${message.account} ${message.id}`, message]))
  for (const [name, runs] of runsOf(frames)) {
    const message = messages.get(name)
    if (runs.size > 1 && !areExplained([...runs.values()].slice(1), message, deletes))
      found.push(`${name} is several runs: ${[...runs.keys()].join(' and ')}`)
  }
}

/** The runs of each message, with the moments at which they were first seen. */
function runsOf(frames: History['frames']): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const seen = new Map<string, Map<string, number>>()
  for (const { account, type, messageId, run, at } of frames) {
    if (run === undefined || (type !== 'accepted' && type !== 'complete' && type !== 'error')) continue
    const name = `${account} ${messageId}`
    const runs = seen.get(name) ?? new Map<string, number>()
    if (!runs.has(run)) runs.set(run, at)
    seen.set(name, runs)
  }
  return seen
}

/** `later` are the moments at which further runs were seen, in their order. */
function areExplained(
  later: readonly number[],
  message: SentMessage | undefined,
  deletes: History['deletes'],
): boolean {
  if (message === undefined) return false
  const may = deletes.filter(
    ({ session, confirmedAt = Infinity }) => session === message.session && confirmedAt > message.at,
  )
  return later.every((seenAt, index) => may.filter(({ sentAt }) => sentAt < seenAt).length > index)
}

/** Nothing that was accepted before a delete is left after it. */
function judgeDeletes(
  { sent, frames, deletes }: History,
  transcripts: ReadonlyMap<string, readonly Line[]>,
  found: string[],
): void {
  const standing = standingRuns(transcripts)
  const runs = runsOf(frames)
  for (const { session, sentAt, confirmedAt } of deletes) {
    if (confirmedAt === undefined) continue
    for (const message of sent) {
      if (message.session !== session || message.lastSentAt >= sentAt) continue
      if ((message.acceptedAt ?? Infinity) >= sentAt) continue
      const left = (standing.get(message.tag) ?? []).some(({ run }) => !cameAgain(message, run, runs, sentAt))
      if (left)
        found.push(`${message.tag} of ${session} was accepted before a delete, and stands in a transcript after it`)
    }
  }
}

/** Where each message stands, and as which run. */
function standingRuns(
  transcripts: ReadonlyMap<string, readonly Line[]>,
): ReadonlyMap<string, readonly { readonly id: string; readonly run: string | undefined }[]> {
  const standing = new Map<string, { readonly id: string; readonly run: string | undefined }[]>()
  for (const [id, lines] of transcripts)
    for (const { tag, run } of lines)
      if (tag !== undefined) standing.set(tag, [...(standing.get(tag) ?? []), { id, run }])
  return standing
}

/**
 * Whether this run is a copy that was on its way when something was asked for at `sentAt`: its message was sent more than
 * once, had another run before, and this one was not seen until then. `judgeRuns` wants a delete between the two.
 */
function cameAgain(
  { account, id, sends, run: first }: SentMessage,
  run: string | undefined,
  runs: ReadonlyMap<string, ReadonlyMap<string, number>>,
  sentAt: number,
): boolean {
  const seenAt = runs.get(`${account} ${id}`)?.get(run ?? '')
  return sends > 1 && run !== first && seenAt !== undefined && seenAt > sentAt
}

/** Copies say the same under the same number, and say that they are copies. */
function judgeCopies(id: string, frames: readonly SeenFrame[], found: string[]): void {
  const [first] = frames
  if (first === undefined) return
  const identity = (frame: SeenFrame): string =>
    JSON.stringify([frame.run, frame.seq, frame.type, frame.content, frame.code])
  if (frames.some((frame) => identity(frame) !== identity(first)))
    found.push(`${id} has different answers: ${[...new Set(frames.map(identity))].join(' and ')}`)
  if (frames.filter(({ redelivered }) => !redelivered).length > 1)
    found.push(`${id} was answered twice without saying so`)
}

function judgeNumbers(frames: readonly SeenFrame[], found: string[]): void {
  const known = new Map<string, string>()
  for (const { account, seq, type, run, at } of frames) {
    // A refusal while the database is away has no number.
    if (seq === undefined || (seq === 0 && run === undefined)) continue
    const isAnswer = (type === 'complete' || type === 'error') && run !== undefined
    const identity = isAnswer ? `the answer of ${run}` : `${type} seen at ${at}`
    const name = `${account} ${seq}`
    const other = known.get(name)
    if (other !== undefined && other !== identity) found.push(`number ${name} is ${other}, and ${identity}`)
    known.set(name, identity)
  }
}

interface Line {
  readonly role: string
  readonly text: string
  readonly tag: string | undefined
  /** Which run it is of. */
  readonly run: string | undefined
}

/** Every line can be read, has its place, its own id and a parent that came before it. */
function readTranscripts(tables: Tables, found: string[]): ReadonlyMap<string, readonly Line[]> {
  const lines = new Map<string, Line[]>()
  const ids = new Map<string, Set<string>>()
  for (const entry of tables.entries) {
    const before = lines.get(entry.session_id) ?? []
    const known = ids.get(entry.session_id) ?? new Set<string>()
    if (entry.position !== before.length + 1) found.push(`${entry.session_id} lacks the line before ${entry.position}`)
    if (known.has(entry.id)) found.push(`${entry.session_id} has two entries called ${entry.id}`)
    if (entry.parent !== null && !known.has(entry.parent))
      found.push(`${entry.session_id} has an entry ${entry.id} without its parent`)
    lines.set(entry.session_id, [...before, readLine(entry, found)])
    ids.set(entry.session_id, known.add(entry.id))
  }
  for (const { session_id: id, entries } of tables.transcripts)
    if ((lines.get(id)?.length ?? 0) !== entries) found.push(`${id} should have ${entries} lines`)
  return lines
}

function readLine({ session_id: session, id, parent, line }: EntryRow, found: string[]): Line {
  try {
    const raw = JSON.parse(line) as {
      id?: string
      parentId?: string | null
      stepId?: string
      message?: { role: string; content: unknown }
    }
    if (raw.id !== id || raw.parentId !== parent) found.push(`${session}: the line of ${id} is another's`)
    const text = raw.message === undefined ? '' : textOf(raw.message.content)
    const tag = raw.message?.role === 'user' ? /\bt\d+\b/.exec(text)?.[0] : undefined
    return { role: raw.message?.role ?? '', text, tag, run: raw.stepId }
  } catch {
    found.push(`${session}: the line of ${id} cannot be read`)
    return { role: '', text: '', tag: undefined, run: undefined }
  }
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((part: { text?: unknown }) => (typeof part.text === 'string' ? part.text : '')).join('')
}

function tagsOf(lines: readonly Line[]): readonly string[] {
  return lines.flatMap(({ tag }) => (tag === undefined ? [] : [tag]))
}

/** A message stands in one transcript, once, behind what was accepted before it. */
function judgeOrder(
  { sent }: History,
  messages: readonly MessageRow[],
  transcripts: ReadonlyMap<string, readonly Line[]>,
  found: string[],
): void {
  const position = new Map(messages.map((row) => [`${row.account} ${row.message_id}`, row.position]))
  const accepted = new Map(sent.map(({ account, id, tag }) => [tag, position.get(`${account} ${id}`)]))
  const seen = new Map<string, string>()
  for (const [session, lines] of transcripts) {
    let last = 0
    for (const tag of tagsOf(lines)) {
      const other = seen.get(tag)
      if (other !== undefined) found.push(`${tag} stands in ${other} and in ${session}`)
      seen.set(tag, session)
      const place = accepted.get(tag)
      if (place === undefined) continue
      if (place < last) found.push(`${tag} stands in ${session} behind what was accepted after it`)
      last = place
    }
  }
}

/** An answer names every message the model was told: those before it in its transcript, no other, in this order. */
function judgeModelView(
  terminal: Terminal,
  transcripts: ReadonlyMap<string, readonly Line[]>,
  { sent }: History,
  found: string[],
): void {
  const tags = new Map(sent.map(({ account, id, tag }) => [`${account} ${id}`, tag]))
  // What stands in a transcript is the last run: an earlier one went with its session.
  const answers = new Map([...terminal].map(([name, frames]) => [tags.get(name), lastRunOf(frames)]))
  for (const [session, lines] of transcripts) {
    const told: string[] = []
    for (const [index, { tag }] of lines.entries()) {
      if (tag === undefined) continue
      told.push(tag)
      const answer = answers.get(tag)
      if (answer?.type !== 'complete') continue
      if (!answer.content?.startsWith(`saw ${told.join(' ')} `))
        found.push(`${tag}: its answer is "${answer.content}", and ${session} has ${told.join(' ')}`)
      const next = lines.findIndex((line, at) => at > index && line.tag !== undefined)
      const stored = lines.slice(index, next < 0 ? undefined : next)
      const copies = stored.filter(({ role, text }) => role === 'assistant' && text === answer.content).length
      if (copies !== 1) found.push(`${tag}: its answer stands ${copies} times in ${session}`)
    }
  }
}

/** The answer of the run that was answered last. */
function lastRunOf(frames: readonly SeenFrame[]): SeenFrame | undefined {
  return frames.findLast(({ run }, index) => frames.findIndex((frame) => frame.run === run) === index)
}

/** Nothing is written to a conversation that was left, and nothing of it appears in a later one. */
function judgeResets(
  { resets, sent, frames }: History,
  { transcripts }: Tables,
  lines: ReadonlyMap<string, readonly Line[]>,
  found: string[],
): void {
  const standing = standingRuns(lines)
  const runs = runsOf(frames)
  const lengths = new Map(transcripts.map(({ session_id: id, entries }) => [id, entries]))
  for (const { session, sentAt, left } of resets) {
    for (const [id, entries] of Object.entries(left))
      if ((lengths.get(id) ?? entries) !== entries)
        found.push(`${id} of ${session} has ${lengths.get(id)} lines, and had ${entries} after its reset was confirmed`)
    for (const message of sent) {
      if (message.session !== session || message.acceptedAt === undefined || message.acceptedAt > sentAt) continue
      for (const { id, run } of standing.get(message.tag) ?? [])
        if (left[id] === undefined && !cameAgain(message, run, runs, sentAt))
          found.push(
            `${message.tag} of ${session} was accepted before a reset, and stands in ${id} that began after it`,
          )
    }
  }
}
