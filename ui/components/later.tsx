import type { ComponentType, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { feed } from '../lib/feed.ts'
import { texts } from '../lib/language.ts'
import { Failure, Loading, useLoaded } from './basics.tsx'

/**
 * A page in a file of its own, which is loaded when the page is first opened. A browser that could not load a file does
 * not ask for it a second time: the whole page is loaded anew, by itself when the connection is back. A gateway of
 * another version has other files, and the page that names them.
 */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined
  return function Later(props: Props): JSX.Element {
    const { error } = useLoaded(async () => void (loaded ??= await load()), [])
    const isOpen = feed.state.value === 'open'
    const wasOffline = useRef(false)
    useEffect(() => {
      if (error === undefined) return
      if (!isOpen) wasOffline.current = true
      else if (wasOffline.current) location.reload()
    }, [error, isOpen])
    const Loaded = loaded
    if (Loaded !== undefined) return <Loaded {...props} />
    if (error === undefined) return <Loading rows={8} />
    return <Failure error={texts.value.state.notLoaded} {...(isOpen ? { again: () => location.reload() } : {})} />
  }
}
