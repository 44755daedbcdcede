import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Conversation } from '../lib/conversation.ts'
import { duration } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { livePart, partsOfStep } from '../lib/step-parts.ts'

/** As many parts as have room beside a conversation; the timeline has all of them. */
const SHOWN = 8
const TICK_MS = 200

/** Where the time of the latest step goes, or went: its model and its tools, one line each. */
export function TurnWaterfall({ conversation }: { readonly conversation: Conversation }): JSX.Element | null {
  const words = texts.value.side
  const step = conversation.steps.value.at(-1)
  const turn = step === undefined ? undefined : conversation.live.value.get(step.id)
  const isLive = turn !== undefined && turn.ended === undefined
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    if (!isLive) return
    const ticking = setInterval(() => setNow(Date.now()), TICK_MS)
    return () => clearInterval(ticking)
  }, [isLive])
  if (step === undefined) return null
  const stored = partsOfStep(step, conversation.requests.value)
  const growing = isLive ? livePart(turn, step, stored.parts, now) : undefined
  const parts = growing === undefined ? stored.parts : [...stored.parts, growing]
  const totalMs = Math.max(stored.totalMs, growing === undefined ? 0 : growing.startMs + growing.durationMs)
  if (parts.length === 0) return null
  return (
    <section>
      <h2>{isLive ? words.turn : words.lastTurn}</h2>
      <ul class="waterfall-small">
        {parts.slice(-SHOWN).map((part, at) => (
          <li key={at}>
            <span>{part.kind === 'tool' ? part.name : words.parts[part.kind]}</span>
            <span class="track">
              <span
                class={`part ${part.kind} ${part === growing ? 'growing' : ''}`}
                style={{
                  left: `${(part.startMs / totalMs) * 100}%`,
                  width: `${Math.max(1.5, (part.durationMs / totalMs) * 100)}%`,
                }}
              />
            </span>
            <span class="number">{duration(part.durationMs)}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}
