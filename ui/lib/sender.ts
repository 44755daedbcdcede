import { ClewClient, type Answer } from 'clew/client'
import { signal } from '@preact/signals'
import { api } from './api.ts'
import { feed } from './feed.ts'
import { keep, kept } from './kept.ts'
import { segment } from './router.ts'
import type { Outgoing, StoredFile, TurnEvent } from './types.ts'

export const outgoing = signal<readonly Outgoing[]>(restoreOutgoing())

let client: ClewClient | undefined

function connect(): ClewClient {
  if (client !== undefined) return client
  const uid = kept('uid') ?? `dashboard-${crypto.randomUUID()}`
  keep('uid', uid)
  const url = new URL('/ws', location.href)
  url.protocol = url.protocol.replace('http', 'ws')
  url.searchParams.set('client', 'dashboard')
  feed.revived.subscribe((times) => {
    if (times > 0) client?.reconnect()
  })
  client = new ClewClient({ url: url.href, uid, reconnect: { maxMs: 5_000 } })
  return client
}

/** Messages whose answers are waited for: a second question for one would be refused. */
const followed = new Set<string>()

/** Sends what an earlier life of this page had not seen confirmed: the gateway knows a message by its id. */
export function resendOutgoing(): void {
  for (const message of outgoing.value) {
    if (followed.has(message.id)) continue
    if (message.state === 'sending') void follow(message)
    else if (message.state === 'accepted') void lookAfter(message).catch(() => undefined)
  }
}

/** One that was accepted in an earlier life of this page may have ended since, without a place in the transcript. */
async function lookAfter({ id, run }: Outgoing): Promise<void> {
  if (run === undefined) return
  const { state, code, error } = await api.get<{ state: string; code?: string; error?: string }>(
    `/api/runs/${segment(run)}`,
  )
  if (state === 'complete') forgetOutgoing(id)
  else if (state === 'cancelled' || state === 'error') notAnswered(id, code, error)
}

/** A stop also means what waits for its turn: no stored message takes the place of these. */
feed.on('turn', ({ run, event }: TurnEvent) => {
  const message = event.type === 'error' ? outgoing.value.find((one) => one.run === run) : undefined
  if (message?.state === 'accepted') notAnswered(message.id, asText(event['code']), asText(event['error']))
})

const asText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

function notAnswered(id: string, code: string | undefined, error: string | undefined): void {
  change(id, { state: 'failed', ...(code === 'TURN_CANCELLED' || error === undefined ? {} : { error }) })
}

export function send(key: string, text: string, files: readonly StoredFile[] = []): void {
  const carried = files.length === 0 ? {} : { files }
  // A message has words: files alone are named.
  const content = text.trim() === '' ? files.map(({ name }) => name).join(', ') : text
  const message: Outgoing = {
    id: crypto.randomUUID(),
    key,
    text: content,
    at: Date.now(),
    state: 'sending',
    ...carried,
  }
  update([...outgoing.value, message])
  void follow(message)
}

/** The stored message is shown in its place. */
export function forgetOutgoing(id: string): void {
  update(outgoing.value.filter((message) => message.id !== id))
}

export function sendAgain(id: string): void {
  const message = outgoing.value.find((one) => one.id === id)
  if (message === undefined) return
  forgetOutgoing(id)
  send(message.key, message.text, message.files)
}

async function follow(message: Outgoing): Promise<void> {
  const { id, key: session, files } = message
  followed.add(id)
  const carried = files === undefined ? {} : { files: files.map((file) => ({ id: file.id })) }
  const answer: Answer = connect().ask(message.text, { id, session, stream: false, ...carried })
  try {
    for await (const event of answer) {
      if (event.type === 'accepted') change(message.id, { state: 'accepted', ...runOf(event) })
    }
    const text = await answer.text()
    const known = outgoing.value.find((one) => one.id === message.id)
    // A command is answered without a turn, so no stored message will take its place.
    if (known !== undefined && isCommand(message.text)) change(message.id, { state: 'accepted', reply: text })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const known = outgoing.value.find((one) => one.id === message.id)
    // Once accepted the transcript tells how it ended.
    if (known?.state === 'sending' || isCommand(message.text)) change(message.id, { state: 'failed', error: reason })
  } finally {
    followed.delete(id)
  }
}

function runOf(event: object): { run?: string } {
  const { runId } = event as { runId?: unknown }
  return typeof runId === 'string' ? { run: runId } : {}
}

export function isCommand(text: string): boolean {
  return /^\/[a-z]+(\s|$)/iu.test(text.trim()) && !/^\/(new|reset)\s+\S/iu.test(text.trim())
}

function change(id: string, fields: Partial<Outgoing>): void {
  update(outgoing.value.map((message) => (message.id === id ? { ...message, ...fields } : message)))
}

const MAX_KEPT = 50

/** Messages that this page has had; what else is kept is of another tab. */
const own = new Set(outgoing.value.map(({ id }) => id))

function update(messages: readonly Outgoing[]): void {
  outgoing.value = messages.slice(-MAX_KEPT)
  for (const { id } of messages) own.add(id)
  const others = restoreOutgoing().filter(({ id }) => !own.has(id))
  const all = [...others, ...outgoing.value].slice(-MAX_KEPT)
  keep('outgoing', all.length === 0 ? undefined : JSON.stringify(all))
}

function restoreOutgoing(): readonly Outgoing[] {
  try {
    const found: unknown = JSON.parse(kept('outgoing') ?? '[]')
    if (!Array.isArray(found)) return []
    return found.filter(
      (one: Outgoing) => typeof one.id === 'string' && typeof one.text === 'string' && one.reply === undefined,
    )
  } catch {
    return []
  }
}
