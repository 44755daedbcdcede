import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { helpOpen, isOfInputMethod, menuOpen } from '../lib/keys.ts'
import { chooseLanguage, chooseTheme, language, texts, theme } from '../lib/language.ts'
import { attempt } from '../lib/notice.ts'
import { go, paths } from '../lib/router.ts'
import { findByName, sessions } from '../lib/sessions.ts'
import { Dialog } from './basics.tsx'
import { newConversation } from './conversation-list.tsx'

const ASK_AFTER_MS = 250

interface Item {
  readonly name: string
  readonly act: () => void
}

/** Ctrl K: pages, conversations, and what can be done from anywhere. */
export function CommandMenu(): JSX.Element | null {
  const words = texts.value
  const [typed, setTyped] = useState('')
  const [at, setAt] = useState(0)
  const isOpen = menuOpen.value
  const wanted = typed.trim()
  // Those that are in no loaded page of the list are found by the gateway.
  useEffect(() => {
    if (!isOpen || wanted === '') return
    const abort = new AbortController()
    const timer = setTimeout(() => void findByName(wanted, abort.signal).catch(() => undefined), ASK_AFTER_MS)
    return () => {
      abort.abort()
      clearTimeout(timer)
    }
  }, [isOpen, wanted])
  if (!isOpen) return null
  const close = () => {
    menuOpen.value = false
    setTyped('')
    setAt(0)
  }
  const items = matching(allItems(), typed).slice(0, 12)
  const run = (item: Item | undefined) => {
    close()
    item?.act()
  }
  return (
    <Dialog title={words.menu.title} onClose={close} class="command-menu">
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="menu-items"
        aria-activedescendant={items.length === 0 ? undefined : `menu-item-${at}`}
        aria-label={words.menu.title}
        placeholder={words.menu.placeholder}
        value={typed}
        // The dialog was opened to type into this field.
        autoFocus
        onInput={(event) => {
          setTyped(event.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={(event) => {
          if (isOfInputMethod(event)) return
          if (event.key === 'ArrowDown') setAt(Math.min(items.length - 1, at + 1))
          else if (event.key === 'ArrowUp') setAt(Math.max(0, at - 1))
          else if (event.key === 'Enter') run(items[at])
          else return
          event.preventDefault()
        }}
      />
      {items.length === 0 && <p class="quiet">{words.menu.nothing}</p>}
      <ul id="menu-items" role="listbox" aria-label={words.menu.title}>
        {items.map((item, place) => (
          <li
            key={item.name}
            id={`menu-item-${place}`}
            role="option"
            aria-selected={place === at}
            onClick={() => run(item)}
          >
            {item.name}
          </li>
        ))}
      </ul>
    </Dialog>
  )
}

function allItems(): readonly Item[] {
  const words = texts.value
  const to = (name: string, path: string): Item => ({ name, act: () => go(path) })
  return [
    { name: words.list.create, act: newConversation },
    to(words.nav.live, '/'),
    to(words.nav.conversations, '/c'),
    to(words.nav.tokens, '/tokens'),
    to(words.nav.xiaoyi, '/xiaoyi'),
    to(words.nav.search, '/search'),
    to(words.nav.settings, '/settings'),
    to(words.nav.cluster, '/cluster'),
    to(words.nav.logs, '/logs'),
    to(words.nav.start, '/start'),
    { name: words.shell.language, act: () => attempt(() => chooseLanguage(language.value === 'zh' ? 'en' : 'zh')) },
    {
      name: theme.value === 'dark' ? words.shell.light : words.shell.dark,
      act: () => chooseTheme(theme.value === 'dark' ? 'light' : 'dark'),
    },
    { name: words.menu.help, act: () => (helpOpen.value = true) },
    ...sessions.value.map((row) => to(`${row.title ?? row.key} · ${row.key}`, paths.conversation(row.key))),
  ]
}

function matching(items: readonly Item[], typed: string): readonly Item[] {
  const wanted = typed.trim().toLowerCase()
  return wanted === '' ? items : items.filter((item) => item.name.toLowerCase().includes(wanted))
}

export function KeyHelp(): JSX.Element | null {
  const words = texts.value.menu
  if (!helpOpen.value) return null
  const rows = [
    ['Ctrl K', words.keys.menu],
    ['j k', words.keys.list],
    ['[ ]', words.keys.requests],
    ['/', words.keys.search],
    ['Ctrl F', words.keys.find],
    ['Esc', words.keys.escape],
    ['?', words.keys.help],
  ] as const
  return (
    <Dialog title={words.help} onClose={() => (helpOpen.value = false)}>
      <dl class="key-list">
        {rows.map(([key, meaning]) => (
          <>
            <dt key={key}>
              <kbd>{key}</kbd>
            </dt>
            <dd key={meaning}>{meaning}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  )
}
