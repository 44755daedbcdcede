import { useState } from 'preact/hooks'
import type { Conversation } from '../lib/conversation.ts'

/** State of a part of the thread that outlives its being scrolled out of the page. */
export function useRowState<T>(conversation: Conversation, name: string, first: T): [T, (value: T) => void] {
  const store = conversation.rowStates
  const [, setRound] = useState(0)
  const value = store.has(name) ? (store.get(name) as T) : first
  return [
    value,
    (next) => {
      store.set(name, next)
      setRound((round) => round + 1)
    },
  ]
}
