import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api, ApiError, needsLogin } from '../lib/api.ts'
import { wordsOf } from '../lib/failures.ts'
import { feed } from '../lib/feed.ts'
import { forgetWritten } from '../lib/kept.ts'
import { chooseLanguage, chooseTheme, language, texts, theme } from '../lib/language.ts'
import { route, type Route } from '../lib/router.ts'
import { attempt } from '../lib/notice.ts'
import { resendOutgoing } from '../lib/sender.ts'
import { isDemoOnly, loadAll, me, runningCount, status } from '../lib/sessions.ts'
import { menuOpen } from '../lib/keys.ts'
import { Banner, Notice } from './banner.tsx'
import { Link } from './basics.tsx'
import { Icon, type IconName } from './icons.tsx'
import { Menu } from './menu.tsx'

interface Place {
  readonly to: string
  readonly icon: IconName
  readonly name: keyof (typeof texts.value)['nav']
  readonly pages: readonly Route['page'][]
}

const PLACES: readonly Place[] = [
  { to: '/', icon: 'activity', name: 'live', pages: ['live'] },
  { to: '/c', icon: 'message', name: 'conversations', pages: ['conversations', 'xray', 'timeline'] },
  { to: '/tokens', icon: 'coins', name: 'tokens', pages: ['tokens'] },
  { to: '/xiaoyi', icon: 'phone', name: 'xiaoyi', pages: ['xiaoyi'] },
  { to: '/search', icon: 'search', name: 'search', pages: ['search'] },
  { to: '/settings', icon: 'sliders', name: 'settings', pages: ['settings'] },
  { to: '/cluster', icon: 'nodes', name: 'cluster', pages: ['cluster'] },
  { to: '/logs', icon: 'scroll', name: 'logs', pages: ['logs'] },
]

/** As many fit into the bar of a phone. */
const FIRST_PLACES = 5

const START: Place = { to: '/start', icon: 'play', name: 'start', pages: ['start'] }

export function Shell({ children }: { readonly children: ComponentChildren }): JSX.Element {
  const words = texts.value
  const places = isDemoOnly() ? [...PLACES, START] : PLACES
  return (
    <div class="shell">
      <a class="skip" href="#main">
        {words.nav.skip}
      </a>
      <div class="sidebar">
        <Link to="/" class="brand">
          <img src="/clew.svg" width="26" height="26" alt="" />
          Clew
        </Link>
        <nav aria-label={words.nav.main}>
          {places.map((place, at) => (
            <PlaceLink key={place.to} place={place} class={at < FIRST_PLACES ? '' : 'later'} />
          ))}
          <MorePlaces places={places.slice(FIRST_PLACES)} />
        </nav>
        <SidebarFoot />
      </div>
      <div class="page">
        <Banner />
        <Notice />
        <main id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
    </div>
  )
}

function PlaceLink({ place, class: name }: { readonly place: Place; readonly class?: string }): JSX.Element {
  return (
    <Link
      to={place.to}
      current={place.pages.includes(route.value.page)}
      {...(name ? { class: name } : {})}
      {...(place.name === 'live' ? { title: `${texts.value.live.running}: ${runningCount.value}` } : {})}
    >
      <Icon name={place.icon} />
      <span>{texts.value.nav[place.name]}</span>
      {place.name === 'live' && <RunningCount />}
    </Link>
  )
}

/** What the bar of a phone has no room for: it closes when something in it was chosen. */
function MorePlaces({ places }: { readonly places: readonly Place[] }): JSX.Element {
  const summary = (
    <>
      <Icon name="more" />
      <span>{texts.value.state.more}</span>
    </>
  )
  return (
    <Menu class="more" summary={summary} isCurrent={places.some((place) => place.pages.includes(route.value.page))}>
      {places.map((place) => (
        <PlaceLink key={place.to} place={place} />
      ))}
      <SidebarFoot />
    </Menu>
  )
}

function RunningCount(): JSX.Element {
  const running = runningCount.value
  return (
    <span class={`count ${running > 0 ? 'busy' : ''}`} aria-hidden="true">
      {running}
    </span>
  )
}

function SidebarFoot(): JSX.Element {
  const words = texts.value.shell
  const isOpen = feed.state.value === 'open'
  return (
    <div class="foot">
      <p class={`health ${isOpen ? 'good' : 'bad'}`}>
        <span class="dot" aria-hidden="true" />
        {isOpen ? words.runs : words.unreachable}
      </p>
      <p>
        {location.host} · v{status.value?.version ?? '…'}
      </p>
      <p>{xiaoyiLine()}</p>
      <div class="switches">
        <button
          type="button"
          class="button small"
          title={words.language}
          aria-label={`${words.languageLabel} · ${words.language}`}
          onClick={() => attempt(() => chooseLanguage(language.value === 'zh' ? 'en' : 'zh'))}
        >
          {words.languageLabel}
        </button>
        <ThemeButton />
        <button
          type="button"
          class="button small"
          title={words.menu}
          aria-label={`Ctrl K · ${words.menu}`}
          onClick={() => (menuOpen.value = true)}
        >
          <kbd>Ctrl K</kbd>
        </button>
      </div>
      <SignOut />
    </div>
  )
}

/** For a page that was opened with a code or a token. */
function SignOut(): JSX.Element | null {
  if (me.value === undefined || me.value.expiresAt === null) return null
  const leave = async () => {
    await api.post('/api/logout')
    forgetWritten()
    location.reload()
  }
  return (
    <button type="button" class="button small" onClick={() => attempt(leave)}>
      {texts.value.shell.signOut}
    </button>
  )
}

function ThemeButton(): JSX.Element {
  const words = texts.value.shell
  const isDark = theme.value === 'dark'
  const label = isDark ? words.light : words.dark
  return (
    <button
      type="button"
      class="button small"
      title={label}
      aria-label={label}
      onClick={() => chooseTheme(isDark ? 'light' : 'dark')}
    >
      <Icon name={isDark ? 'sun' : 'moon'} size={15} />
    </button>
  )
}

function xiaoyiLine(): string {
  const words = texts.value.shell
  const links = status.value?.channels?.['xiaoyi']?.links
  if (links === undefined || links.length === 0) return words.xiaoyiOff
  return words.xiaoyiOn(links.filter((link) => link.state === 'open' || link.state === 'ready').length, links.length)
}

/** A token, a code, or the whole link that holds one. */
async function signIn(typed: string): Promise<void> {
  const code = /(?:#code=|^)([\da-f]{32})$/u.exec(typed)?.[1]
  const isCode = code !== undefined && (await api.post('/api/login', { code }).then(() => true, isRefused))
  if (!isCode) await api.post('/api/login', { token: typed })
}

/** Thirty-two digits may be a token too. */
function isRefused(thrown: unknown): false {
  if (thrown instanceof ApiError && thrown.status === 401) return false
  throw thrown
}

export function Login(): JSX.Element {
  const words = texts.value.login
  const [value, setValue] = useState('')
  const [error, setError] = useState<string | undefined>(undefined)
  const enter = async (event: Event) => {
    event.preventDefault()
    try {
      await signIn(value.trim())
      needsLogin.value = false
      feed.reconnectNow()
      await loadAll()
      resendOutgoing()
    } catch (thrown) {
      setError(thrown instanceof ApiError && thrown.status === 401 ? words.failed : wordsOf(thrown).message)
    }
  }
  return (
    <main id="main" class="login">
      <form onSubmit={(event) => void enter(event)}>
        <img src="/clew.svg" width="40" height="40" alt="" />
        <h1>{words.title}</h1>
        <p>{words.hint}</p>
        <label>
          {words.token}
          <input
            type="password"
            autocomplete="current-password"
            value={value}
            onInput={(event) => setValue(event.currentTarget.value)}
          />
        </label>
        {error !== undefined && (
          <p class="problem" role="alert">
            {error}
          </p>
        )}
        <button type="submit" class="button primary">
          {words.enter}
        </button>
      </form>
    </main>
  )
}
