import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { api } from '../lib/api.ts'
import { texts, type Texts } from '../lib/language.ts'
import { Failure } from './basics.tsx'
import { Icon } from './icons.tsx'

const LOOK_EVERY_MS = 500

interface PhoneBubble {
  readonly from: 'user' | 'agent'
  readonly text: string
  readonly thinking?: string
  readonly state: keyof Texts['xiaoyi']['phoneStates']
}

interface PhoneScreen {
  readonly connected: boolean
  readonly bubbles: readonly PhoneBubble[]
  readonly violations: number
}

/** The simulator's virtual phone: it shows what a real one would. */
export function Phone(): JSX.Element {
  const words = texts.value.xiaoyi
  const [screen, setScreen] = useState<PhoneScreen | undefined>(undefined)
  const [text, setText] = useState('')
  const [error, setError] = useState<unknown>(undefined)
  /** Why the screen cannot be seen now. */
  const [lost, setLost] = useState<unknown>(undefined)
  const glass = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const left = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = async () => {
      try {
        setScreen(await api.get<PhoneScreen>('/api/phone', left.signal))
        setLost(undefined)
      } catch (thrown) {
        if (!left.signal.aborted) setLost(thrown)
      }
      if (!left.signal.aborted) timer = setTimeout(() => void look(), LOOK_EVERY_MS)
    }
    void look()
    return () => {
      left.abort()
      clearTimeout(timer)
    }
  }, [])
  // Only what is inside the phone: the page stays where its reader is.
  useEffect(() => glass.current?.scrollTo(0, glass.current.scrollHeight), [screen?.bubbles.at(-1)?.text])
  const act = async (path: string, body?: unknown) => {
    try {
      await api.post(path, body)
      setError(undefined)
    } catch (thrown) {
      setError(thrown)
    }
  }
  const submit = (event: Event) => {
    event.preventDefault()
    if (text.trim() === '') return
    void act('/api/phone/messages', { text })
    setText('')
  }
  const bubbles = screen?.bubbles ?? []
  return (
    <section class="phone" aria-label={words.phone}>
      <h2>{words.phone}</h2>
      <div class="phone-screen" tabIndex={0} role="log" ref={glass}>
        {bubbles.length === 0 && <p class="quiet">{words.phoneEmpty}</p>}
        {bubbles.map((bubble, at) => (
          <div key={at} class={`phone-bubble ${bubble.from}`}>
            {bubble.thinking !== undefined && bubble.thinking !== '' && <p class="quiet">{bubble.thinking}</p>}
            <p class="as-written">{bubble.text}</p>
            {words.phoneStates[bubble.state] !== '' && <small>{words.phoneStates[bubble.state]}</small>}
          </div>
        ))}
      </div>
      {screen?.connected === false && <p class="quiet">{words.phoneOffline}</p>}
      {screen !== undefined && screen.violations > 0 && <p class="bad">{words.phoneViolations(screen.violations)}</p>}
      {(error ?? lost) !== undefined && <Failure error={error ?? lost} />}
      <form class="phone-form" onSubmit={submit}>
        <label>
          <span class="hidden-text">{words.phoneWrite}</span>
          <input value={text} placeholder={words.phoneWrite} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <button type="submit" class="button primary icon-only" aria-label={words.phoneSend}>
          <Icon name="up" />
        </button>
      </form>
      <p class="answers">
        <button type="button" class="button small" onClick={() => void act('/api/phone/cancel')}>
          {words.phoneCancel}
        </button>
        <button type="button" class="button small" onClick={() => void act('/api/phone/clear')}>
          {words.phoneClear}
        </button>
      </p>
    </section>
  )
}
