import { effect } from '@preact/signals'
import { render, type JSX } from 'preact'
import './styles/tokens.css'
import './styles/base.css'
import './styles/pages.css'
import { api, needsLogin } from './lib/api.ts'
import { feed } from './lib/feed.ts'
import { followDay } from './lib/format.ts'
import { startKeys } from './lib/keys.ts'
import { loadTexts, texts } from './lib/language.ts'
import { route, type Route } from './lib/router.ts'
import { resendOutgoing } from './lib/sender.ts'
import { loadAll, rowOf, startSessions } from './lib/sessions.ts'
import { CommandMenu, KeyHelp } from './components/command-menu.tsx'
import { Empty, Link } from './components/basics.tsx'
import { later } from './components/later.tsx'
import { Login, Shell } from './components/shell.tsx'
import { ConversationPage } from './pages/conversation.tsx'
import { LivePage } from './pages/live.tsx'
import { XrayPage } from './pages/xray.tsx'

// Pages that are opened less often are files of their own.
const StartPage = later(async () => (await import('./pages/start.tsx')).StartPage)
const XiaoyiPage = later(async () => (await import('./pages/xiaoyi.tsx')).XiaoyiPage)
const TokensPage = later(async () => (await import('./pages/tokens.tsx')).TokensPage)
const TimelinePage = later(async () => (await import('./pages/timeline.tsx')).TimelinePage)
const SearchPage = later(async () => (await import('./pages/search.tsx')).SearchPage)
const SettingsPage = later(async () => (await import('./pages/settings.tsx')).SettingsPage)
const ClusterPage = later(async () => (await import('./pages/cluster.tsx')).ClusterPage)
const LogsPage = later(async () => (await import('./pages/logs.tsx')).LogsPage)

function Page({ shown }: { readonly shown: Route }): JSX.Element {
  switch (shown.page) {
    case 'live':
      return <LivePage />
    case 'start':
      return <StartPage />
    case 'conversations':
      return <ConversationPage sessionKey={shown.key} />
    case 'xray':
      return <XrayPage sessionKey={shown.key} n={shown.n} />
    case 'timeline':
      return <TimelinePage sessionKey={shown.key} step={shown.step} />
    case 'tokens':
      return <TokensPage />
    case 'xiaoyi':
      return <XiaoyiPage />
    case 'search':
      return <SearchPage text={shown.text} />
    case 'settings':
      return <SettingsPage />
    case 'logs':
      return <LogsPage />
    case 'cluster':
      return <ClusterPage />
    case 'unknown':
      return (
        <Empty
          action={
            <Link to="/" class="button">
              {texts.value.state.toLive}
            </Link>
          }
        >
          {texts.value.state.notFound}
        </Empty>
      )
  }
}

function App(): JSX.Element {
  if (needsLogin.value) return <Login />
  return (
    <>
      <Shell>
        <Page shown={route.value} />
      </Shell>
      <CommandMenu />
      <KeyHelp />
    </>
  )
}

/** A link from `clew start` carries a single-use code behind `#`: it buys the cookie and leaves the address. */
async function spendCode(): Promise<void> {
  const code = /^#code=(.+)$/u.exec(location.hash)?.[1]
  if (code === undefined) return
  history.replaceState(null, '', location.pathname + location.search)
  await api.post('/api/login', { code: decodeURIComponent(code) }).catch(() => undefined)
}

/** The tab says which page it is, and of which conversation. */
function pageTitle(shown: Route): string {
  const { nav } = texts.value
  if (shown.page === 'unknown') return 'Clew'
  if (!('key' in shown) || shown.key === undefined)
    return `${nav[shown.page === 'xray' || shown.page === 'timeline' ? 'conversations' : shown.page]} · Clew`
  const row = rowOf(shown.key)
  return `${row?.state === 'running' ? '● ' : ''}${row?.title ?? shown.key} · Clew`
}

async function start(): Promise<void> {
  // Without the Chinese texts, which are a file of their own, the page is English.
  await Promise.all([loadTexts().catch(() => undefined), spendCode()])
  startSessions()
  startKeys()
  followDay()
  effect(() => {
    document.title = pageTitle(route.value)
  })
  const root = document.getElementById('app')
  if (root !== null) render(<App />, root)
  // First: what changes while the lists are on their way is heard of.
  feed.start()
  await loadAll()
  if (!needsLogin.value) resendOutgoing()
}

void start()
