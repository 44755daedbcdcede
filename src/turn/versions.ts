import { isRecord } from '../base/json.ts'
import { takeHead } from '../base/text.ts'
import { LEAF_POINTER, type Entry, type EntryDraft } from '../core/entry.ts'
import type { EntryId, RunId } from '../core/ids.ts'
import { textOf, type UserBlock } from '../core/message.ts'
import type { Phrases } from '../core/phrases/phrases.ts'
import { deriveSteps } from '../history/derive-steps.ts'
import type { Transcript } from '../transcript/store.ts'

/** `custom` entry at the end of the version that a command leaves: which command (`run`) asked which message again. */
const REWRITE_ENTRY = 'clew.rewrite'

const WORDS_SHOWN = 60
const VERSIONS_SHOWN = 50

type Content = string | readonly UserBlock[]

/** What is asked again, or why nothing is. */
export type Rewrite = { readonly content: Content } | { readonly refusal: string }

/**
 * `/retry` and `/edit`: goes back to before a message and asks it once more, as it was or in other words. Nothing is
 * removed: the old answer stays in the transcript as a version of its own, and `/branch` goes back to it. A restart that
 * runs the command again finds its record and goes back only once.
 */
export async function rewrite(
  { name, rest }: { readonly name: 'retry' | 'edit'; readonly rest: string },
  run: RunId,
  transcript: Transcript,
  phrases: Phrases,
): Promise<Rewrite> {
  const { number, text } = parseEdit(name === 'edit' ? rest : '')
  if (name === 'edit' && text === '') return { refusal: phrases.editUsage() }
  const original = await whatToAsk(run, number, transcript)
  if (original === undefined) return { refusal: phrases.nothingToAskAgain() }
  return { content: name === 'retry' ? original : withText(original, text) }
}

/** `#2 text` is the second message of the user; without a number it is the latest. */
function parseEdit(rest: string): { readonly number?: number; readonly text: string } {
  const match = /^#(\d{1,6})\s+(\S[\s\S]*)$/u.exec(rest)
  if (match !== null) return { number: Number(match[1]), text: match[2] ?? '' }
  return { text: /^#\d{1,6}$/u.test(rest) ? '' : rest }
}

/** The content of the message to ask again, with the leaf moved to before it; undefined when there is none. */
async function whatToAsk(run: RunId, number: number | undefined, transcript: Transcript): Promise<Content | undefined> {
  const earlier = await rewrittenBy(run, transcript)
  const id = earlier ?? (await instructionOf(number, transcript))
  const entry = id === undefined ? undefined : await transcript.entry(id)
  if (entry?.type !== 'message' || entry.message.role !== 'user') return undefined
  if (earlier === undefined) await transcript.append([rewriteDraft(run, entry.id)])
  const path = await transcript.branch()
  // After a restart the new question may be stored already: then the leaf is where it belongs.
  const isAsked = path.some((each) => each.type === 'message' && each.stepId === run)
  if (!isAsked && path.at(-1)?.id !== entry.parentId) await transcript.branchTo(entry.parentId)
  return entry.message.content
}

async function instructionOf(number: number | undefined, transcript: Transcript): Promise<EntryId | undefined> {
  const asked = deriveSteps(await transcript.branch()).flatMap(({ instruction }) => instruction ?? [])
  return number === undefined ? asked.at(-1) : asked[number - 1]
}

function rewriteDraft(run: RunId, asked: EntryId): EntryDraft {
  return { type: 'custom', customType: REWRITE_ENTRY, data: { run, asked } }
}

async function rewrittenBy(run: RunId, transcript: Transcript): Promise<EntryId | undefined> {
  for await (const entry of transcript.entries()) {
    if (entry.type !== 'custom' || entry.customType !== REWRITE_ENTRY || !isRecord(entry.data)) continue
    if (entry.data['run'] === run && typeof entry.data['asked'] === 'string') return entry.data['asked'] as EntryId
  }
  return undefined
}

/** Other words for the same pictures. */
function withText(original: Content, text: string): Content {
  if (typeof original === 'string') return text
  const others = original.filter((block) => block.type !== 'text')
  return others.length === 0 ? text : [{ type: 'text', text }, ...others]
}

/** `/branch` lists the versions of the conversation, `/branch N` goes on with one of them. */
export async function chooseVersion(rest: string, transcript: Transcript, phrases: Phrases): Promise<string> {
  const versions = await versionsOf(transcript)
  if (rest === '') return versions.length < 2 ? phrases.oneVersion() : listOf(versions, phrases)
  const chosen = /^\d{1,6}$/u.test(rest) ? versions[Number(rest) - 1] : undefined
  if (chosen === undefined) return phrases.noSuchVersion(versions.length)
  if (transcript.leafId !== chosen.tip) await transcript.branchTo(chosen.tip)
  return phrases.switchedTo(Number(rest), chosen.words)
}

interface Version {
  readonly tip: EntryId
  readonly isCurrent: boolean
  /** The latest the user said in it. */
  readonly words: string
}

function listOf(versions: readonly Version[], phrases: Phrases): string {
  const lines = versions.map(({ words, isCurrent }, at) => `${isCurrent ? '→' : ' '} ${at + 1}  ${words}`)
  const shown = lines.slice(-VERSIONS_SHOWN)
  return [phrases.versions(versions.length), ...shown].join('\n')
}

/** Every end of the tree that holds something the user said, in the order in which the ways to them part. */
async function versionsOf(transcript: Transcript): Promise<readonly Version[]> {
  const children = new Map<EntryId | null, EntryId[]>()
  const words = new Map<EntryId, string>()
  for await (const entry of transcript.entries()) {
    if (entry.type === 'custom' && entry.customType === LEAF_POINTER) continue
    const siblings = children.get(entry.parentId)
    if (siblings === undefined) children.set(entry.parentId, [entry.id])
    else siblings.push(entry.id)
    words.set(entry.id, wordsOf(entry) ?? (entry.parentId === null ? '' : (words.get(entry.parentId) ?? '')))
  }
  const leaf = transcript.leafId
  const versions: Version[] = []
  const waiting: { readonly id: EntryId; readonly isCurrent: boolean }[] = []
  const push = (parent: EntryId | null, isCurrent: boolean): void => {
    for (const id of (children.get(parent) ?? []).toReversed())
      waiting.push({ id, isCurrent: isCurrent || id === leaf })
  }
  push(null, false)
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const isTip = !children.has(next.id)
    const said = words.get(next.id) ?? ''
    if (isTip && said !== '') versions.push({ tip: next.id, isCurrent: next.isCurrent, words: said })
    push(next.id, next.isCurrent)
  }
  return versions
}

function wordsOf(entry: Entry): string | undefined {
  if (entry.type !== 'message' || entry.message.role !== 'user') return undefined
  const [line = ''] = textOf(entry.message.content).trim().split('\n', 1)
  return takeHead(line, WORDS_SHOWN)
}
