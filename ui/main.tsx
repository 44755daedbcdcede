import { effect } from '@preact/signals'
import { render, type JSX } from 'preact'
import { lazy, Suspense } from 'preact/compat'
import './styles/tokens.css'
import './styles/base.css'
import './styles/pages.css'
import { api, needsLogin } from './lib/api.ts'
import { feed } from './lib/feed.ts'
import { startKeys } from './lib/keys.ts'
import { loadTexts, texts } from './lib/language.ts'
import { route, type Route } from './lib/router.ts'
import { resendOutgoing } from './lib/sender.ts'
import { loadAll, rowOf, startSessions } from './lib/sessions.ts'
import { CommandMenu, KeyHelp } from './components/command-menu.tsx'
import { Empty, Link, Loading } from './components/basics.tsx'
import { Login, Shell } from './components/shell.tsx'
import { ConversationPage } from './pages/conversation.tsx'
import { LivePage } from './pages/live.tsx'
import { XrayPage } from './pages/xray.tsx'

// Pages that are opened less often are files of their own.
const StartPage = lazy(async () => ({ default: (await import('./pages/start.tsx')).StartPage }))
const XiaoyiPage = lazy(async () => ({ default: (await import('./pages/xiaoyi.tsx')).XiaoyiPage }))
const TokensPage = lazy(async () => ({ default: (await import('./pages/tokens.tsx')).TokensPage }))
const TimelinePage = lazy(async () => ({ default: (await import('./pages/timeline.tsx')).TimelinePage }))
const SearchPage = lazy(async () => ({ default: (await import('./pages/search.tsx')).SearchPage }))
const SettingsPage = lazy(async () => ({ default: (await import('./pages/settings.tsx')).SettingsPage }))
const ClusterPage = lazy(async () => ({ default: (await import('./pages/cluster.tsx')).ClusterPage }))
const LogsPage = lazy(async () => ({ default: (await import('./pages/logs.tsx')).LogsPage }))

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
        <Suspense fallback={<Loading rows={8} />}>
          <Page shown={route.value} />
        </Suspense>
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
  await Promise.all([loadTexts(), spendCode()])
  startSessions()
  startKeys()
  effect(() => {
    document.title = pageTitle(route.value)
  })
  const root = document.getElementById('app')
  if (root !== null) render(<App />, root)
  await loadAll()
  feed.start()
  if (!needsLogin.value) resendOutgoing()
}

void start()
