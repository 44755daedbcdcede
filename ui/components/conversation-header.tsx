import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api, sessionPath } from '../lib/api.ts'
import { count } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { notify } from '../lib/notice.ts'
import { go, paths, route } from '../lib/router.ts'
import { models, rowOf, status } from '../lib/sessions.ts'
import { ChannelBadge, Dialog, Failure, Link } from './basics.tsx'
import { Menu } from './menu.tsx'
import { Icon } from './icons.tsx'

/** Name, views, model and actions of a conversation: the same on its three pages. */
export function ConversationHeader({
  sessionKey,
  children,
}: {
  readonly sessionKey: string
  readonly children?: ComponentChildren
}): JSX.Element {
  const row = rowOf(sessionKey)
  return (
    <header class="conversation-header">
      <Link to="/c" class="button icon-only back" label={texts.value.nav.conversations}>
        <Icon name="left" />
      </Link>
      <div class="name">
        <h1>{row?.title ?? sessionKey}</h1>
        <p>
          <ChannelBadge channel={row?.lastChannel} />
          <code>{sessionKey}</code>
        </p>
      </div>
      <Views sessionKey={sessionKey} />
      <div class="header-tools">
        <ModelChoice sessionKey={sessionKey} />
        {children}
        <Actions sessionKey={sessionKey} />
      </div>
    </header>
  )
}

function Views({ sessionKey }: { readonly sessionKey: string }): JSX.Element {
  const words = texts.value.conversation
  const page = route.value.page
  return (
    <nav class="views" aria-label={words.views}>
      <Link to={paths.conversation(sessionKey)} current={page === 'conversations'}>
        <Icon name="message" size={16} /> {words.tab}
      </Link>
      <Link to={paths.xray(sessionKey)} current={page === 'xray'}>
        <Icon name="scan" size={16} /> {words.xray}
      </Link>
      <Link to={paths.timeline(sessionKey)} current={page === 'timeline'}>
        <Icon name="activity" size={16} /> {words.timeline}
      </Link>
    </nav>
  )
}

function ModelChoice({ sessionKey }: { readonly sessionKey: string }): JSX.Element {
  const words = texts.value.conversation
  const [error, setError] = useState<unknown>(undefined)
  const row = rowOf(sessionKey)
  const chosen = row?.modelOverride === undefined ? '' : (row.model ?? row.modelOverride)
  const fallback = status.value?.model ?? ''
  const choose = async (model: string) => {
    try {
      await api.post(sessionPath(sessionKey, '/model'), { model: model === '' ? null : model })
      setError(undefined)
    } catch (thrown) {
      setError(thrown)
    }
  }
  const known = models.value.map(({ ref }) => ref)
  const options = chosen === '' || known.includes(chosen) ? known : [chosen, ...known]
  return (
    <>
      <label class="select">
        <span class="hidden-text">{words.model}</span>
        <select value={chosen} onChange={(event) => void choose(event.currentTarget.value)}>
          <option value="">{words.defaultModel(fallback)}</option>
          {options.map((ref) => (
            <option key={ref} value={ref}>
              {ref}
            </option>
          ))}
        </select>
      </label>
      {error !== undefined && <Failure error={error} />}
    </>
  )
}

interface Maintained {
  readonly tokensBefore: number
  readonly tokensAfter: number
  readonly saved: number
}

type Asking = 'rename' | 'reset' | 'remove' | undefined

function Actions({ sessionKey }: { readonly sessionKey: string }): JSX.Element {
  const words = texts.value.conversation
  const [asking, setAsking] = useState<Asking>(undefined)
  const [error, setError] = useState<unknown>(undefined)
  const run = async (work: () => Promise<unknown>) => {
    try {
      await work()
      setError(undefined)
    } catch (thrown) {
      setError(thrown)
    }
  }
  /** Cleanup or summary, which say what they did. */
  const maintain = (verb: 'cleanup' | 'compact') =>
    run(async () => {
      const done = await api.post<Maintained>(sessionPath(sessionKey, `/${verb}`))
      notify(
        done.saved > 0 ? words.maintained(count(done.tokensBefore), count(done.tokensAfter)) : words.nothingToDo[verb],
      )
    })
  const item = (label: string, work: () => void) => (
    <button type="button" onClick={work}>
      {label}
    </button>
  )
  return (
    <>
      <Menu class="menu" label={words.actions} summaryClass="button icon-only" summary={<Icon name="more" />}>
        {item(words.rename, () => setAsking('rename'))}
        {item(words.cleanup, () => void maintain('cleanup'))}
        {item(words.compact, () => void maintain('compact'))}
        {(['html', 'md', 'jsonl'] as const).map((format) => (
          <a key={format} href={sessionPath(sessionKey, `/export?format=${format}`)} download>
            {words.export} .{format}
          </a>
        ))}
        {item(words.reset, () => setAsking('reset'))}
        {item(words.remove, () => setAsking('remove'))}
      </Menu>
      {error !== undefined && <Failure error={error} />}
      {asking === 'rename' && <Rename sessionKey={sessionKey} onClose={() => setAsking(undefined)} run={run} />}
      {asking === 'reset' && (
        <Confirm
          title={words.reset}
          question={words.resetConfirm}
          onClose={() => setAsking(undefined)}
          onYes={() => void run(() => api.post(sessionPath(sessionKey, '/reset')))}
        />
      )}
      {asking === 'remove' && (
        <Confirm
          title={words.remove}
          question={words.removeConfirm}
          onClose={() => setAsking(undefined)}
          onYes={() =>
            void run(async () => {
              await api.delete(sessionPath(sessionKey))
              go('/c')
            })
          }
        />
      )}
    </>
  )
}

function Confirm({
  title,
  question,
  onYes,
  onClose,
}: {
  readonly title: string
  readonly question: string
  readonly onYes: () => void
  readonly onClose: () => void
}): JSX.Element {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{question}</p>
      <form method="dialog" class="answers">
        <button type="submit" class="button">
          {texts.value.state.cancel}
        </button>
        <button type="submit" class="button primary" onClick={onYes}>
          {title}
        </button>
      </form>
    </Dialog>
  )
}

function Rename({
  sessionKey,
  run,
  onClose,
}: {
  readonly sessionKey: string
  readonly run: (work: () => Promise<unknown>) => Promise<void>
  readonly onClose: () => void
}): JSX.Element {
  const words = texts.value.conversation
  const [title, setTitle] = useState(rowOf(sessionKey)?.title ?? '')
  return (
    <Dialog title={words.rename} onClose={onClose}>
      <form method="dialog" onSubmit={() => void run(() => api.patch(sessionPath(sessionKey), { title }))}>
        <label class="stacked">
          {words.renamePrompt}
          <input autofocus value={title} maxLength={200} onInput={(event) => setTitle(event.currentTarget.value)} />
        </label>
        <div class="answers">
          <button type="submit" class="button primary">
            {words.save}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
