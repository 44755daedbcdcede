import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { needsLogin } from '../lib/api.ts'
import { feed } from '../lib/feed.ts'
import { texts } from '../lib/language.ts'
import { notice } from '../lib/notice.ts'
import { Icon } from './icons.tsx'

/** Says that the connection is lost, and when it is tried again. Everything shown stays readable. */
export function Banner(): JSX.Element | null {
  const words = texts.value.shell
  const state = feed.state.value
  const [now, setNow] = useState(Date.now())
  const [isLong, setIsLong] = useState(false)
  useEffect(() => {
    if (state === 'open') {
      setIsLong(false)
      return
    }
    // A change of the watched conversation reconnects within moments: that is no news.
    const patience = setTimeout(() => setIsLong(true), 700)
    const ticking = setInterval(() => setNow(Date.now()), 500)
    return () => {
      clearTimeout(patience)
      clearInterval(ticking)
    }
  }, [state])
  if (state === 'open' || !isLong || needsLogin.value) return null
  const seconds = Math.max(0, Math.ceil((feed.retryAt.value - now) / 1_000))
  return (
    <div class="banner" role="status">
      <Icon name="warning" />
      <span>{state === 'waiting' ? words.offline(seconds) : words.connecting}</span>
      <button type="button" class="button small" onClick={() => feed.reconnectNow()}>
        {words.tryNow}
      </button>
    </div>
  )
}

/** Says what was just done, or failed, where the page itself does not show it. */
export function Notice(): JSX.Element {
  const said = notice.value
  return (
    <div class="notice" role="status">
      {said !== undefined && (
        <p>
          <Icon name={said.isFailure ? 'warning' : 'check'} size={16} /> {said.text}
        </p>
      )}
    </div>
  )
}
