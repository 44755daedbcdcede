import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { duration } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { go, paths } from '../lib/router.ts'
import { partsOfStep, type StepPart } from '../lib/step-parts.ts'
import type { Conversation } from '../lib/conversation.ts'
import { Empty, Failure, Loading } from '../components/basics.tsx'
import { ConversationHeader } from '../components/conversation-header.tsx'
import { useConversation } from './conversation.tsx'
import type { Step } from '../lib/types.ts'

/** Where the time of one step went. */
export function TimelinePage({
  sessionKey,
  step,
}: {
  readonly sessionKey: string
  readonly step: string | undefined
}): JSX.Element {
  const conversation = useConversation(sessionKey)
  return (
    <div class="xray">
      <ConversationHeader sessionKey={sessionKey} />
      {conversation === undefined ? <Loading rows={6} /> : <Timeline conversation={conversation} chosen={step} />}
    </div>
  )
}

function Timeline({
  conversation,
  chosen,
}: {
  readonly conversation: Conversation
  readonly chosen: string | undefined
}): JSX.Element {
  const words = texts.value.timeline
  const steps = conversation.steps.value
  const [zoom, setZoom] = useState(1)
  const [error, setError] = useState<unknown>(undefined)
  const [tries, setTries] = useState(0)
  const hasMore = conversation.older.value !== undefined
  const isMissing = chosen !== undefined && steps.every((one) => one.id !== chosen)
  useEffect(() => {
    if (!isMissing || !hasMore) return
    setError(undefined)
    conversation.loadOlder().catch(setError)
  }, [isMissing, hasMore, steps, tries])
  if (conversation.state.value === 'loading') return <Loading rows={6} />
  if (conversation.state.value === 'failed' && conversation.messages.value.length === 0)
    return <Failure error={conversation.error.value} again={() => void conversation.reload()} />
  const step = chosen === undefined ? steps.at(-1) : steps.find((one) => one.id === chosen)
  if (step === undefined && error !== undefined) return <Failure error={error} again={() => setTries(tries + 1)} />
  if (step === undefined && hasMore) return <Loading rows={6} />
  if (step === undefined) return <Empty>{steps.length === 0 ? words.empty : words.noSuch}</Empty>
  const { parts, totalMs } = partsOfStep(step, conversation.requests.value)
  return (
    <div class="xray-body">
      <div class="toolbar">
        <label class="select">
          {words.step}
          <select
            value={step.id}
            onChange={(event) => go(paths.timeline(conversation.key, event.currentTarget.value), true)}
          >
            {steps.map((one, at) => (
              <option key={one.id} value={one.id}>
                {hasMore ? '' : `${at + 1}. `}
                {titleOf(one)}
              </option>
            ))}
          </select>
        </label>
        <label class="select">
          {words.zoom}
          <input
            type="range"
            min={1}
            max={10}
            step={0.5}
            value={zoom}
            onInput={(event) => setZoom(Number(event.currentTarget.value))}
          />
        </label>
        <p class="quiet">
          {words.total} {duration(totalMs)}
        </p>
      </div>
      {parts.length === 0 ? <Empty>{words.unknown}</Empty> : <Waterfall parts={parts} totalMs={totalMs} zoom={zoom} />}
    </div>
  )
}

function titleOf({ messages }: Step): string {
  const instruction = messages.find((message) => message.role === 'user')
  return instruction?.role === 'user' ? instruction.text.replaceAll(/\s+/gu, ' ').slice(0, 60) : ''
}

function nameOf(part: StepPart): string {
  const words = texts.value.timeline
  if (part.kind === 'tool') return part.name
  return { queue: words.queue, wait: words.wait, text: words.text, cleanup: words.cleanup }[part.kind]
}

function Waterfall({
  parts,
  totalMs,
  zoom,
}: {
  readonly parts: readonly StepPart[]
  readonly totalMs: number
  readonly zoom: number
}): JSX.Element {
  const words = texts.value.timeline
  return (
    <section class="panel waterfall" aria-label={words.table} tabIndex={0} role="region">
      <table class="plain-table" style={{ width: `${zoom * 100}%` }}>
        <thead>
          <tr>
            <th scope="col">{words.part}</th>
            <th scope="col" class="lane">
              {words.title}
            </th>
            <th scope="col" class="number">
              {words.began}
            </th>
            <th scope="col" class="number">
              {words.took}
            </th>
          </tr>
        </thead>
        <tbody>
          {parts.map((part, at) => (
            <tr key={at}>
              <th scope="row">
                {nameOf(part)} {part.failed === true && <span class="bad">{texts.value.thread.failed}</span>}
              </th>
              <td class="lane" aria-hidden="true">
                <span
                  class={`part ${part.kind}`}
                  style={{
                    left: `${(part.startMs / totalMs) * 100}%`,
                    width: `${Math.max(0.4, (part.durationMs / totalMs) * 100)}%`,
                  }}
                />
              </td>
              <td class="number" data-label={words.began}>
                {duration(part.startMs)}
              </td>
              <td class="number">{duration(part.durationMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
