import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../lib/api.ts'
import { duration } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { keptEntry, readPasted, type Tested } from '../lib/pasted-entry.ts'
import { go, paths } from '../lib/router.ts'
import { send } from '../lib/sender.ts'
import { status } from '../lib/sessions.ts'
import { CopyButton } from '../components/basics.tsx'

const PROVIDERS = ['anthropic', 'openai', 'google', 'mistral', 'openai-compatible'] as const
type Provider = (typeof PROVIDERS)[number]

const EXAMPLES: Readonly<Record<Provider, { readonly variable: string; readonly model: string }>> = {
  anthropic: { variable: 'ANTHROPIC_API_KEY', model: 'claude-sonnet-4-5' },
  openai: { variable: 'OPENAI_API_KEY', model: 'gpt-5-mini' },
  google: { variable: 'GEMINI_API_KEY', model: 'gemini-2.5-flash' },
  mistral: { variable: 'MISTRAL_API_KEY', model: 'mistral-small-latest' },
  'openai-compatible': { variable: 'MY_API_KEY', model: 'my-model' },
}

interface TestResult {
  readonly ok: boolean
  readonly firstByteMs?: number
  readonly text?: string
  readonly code?: string
  readonly error?: string
}

/** From the demo model to one's own: try, test, keep. */
export function StartPage(): JSX.Element {
  const words = texts.value.start
  const isDemo = status.value?.model.startsWith('demo') === true
  const tryIt = () => {
    const key = `dashboard:${crypto.randomUUID().slice(0, 8)}`
    send(key, words.tryText)
    go(paths.conversation(key))
  }
  return (
    <div class="page-body narrow">
      <h1>{words.title}</h1>
      <p>{isDemo ? words.demo : words.real}</p>
      <section class="panel">
        <h2>{words.tryTitle}</h2>
        <button type="button" class="button primary" onClick={tryIt}>
          {words.tryIt}
        </button>
      </section>
      <ProviderTest />
    </div>
  )
}

function ProviderTest(): JSX.Element {
  const words = texts.value.start
  const [provider, setProvider] = useState<Provider>('anthropic')
  const [key, setKey] = useState('')
  const [baseUrl, setBaseUrl] = useState('')
  const [model, setModel] = useState(EXAMPLES.anthropic.model)
  const [result, setResult] = useState<TestResult | 'testing' | undefined>(undefined)
  const [pasted, setPasted] = useState('')
  const isCompatible = provider === 'openai-compatible'
  const name = isCompatible ? 'my-local' : provider
  const typed: Tested = {
    name,
    model,
    entry: {
      ...(isCompatible ? { type: provider } : {}),
      ...(key === '' ? {} : { apiKey: key }),
      ...(baseUrl === '' ? {} : { baseUrl }),
    },
  }
  const tested = pasted.trim() === '' ? typed : readPasted(pasted, typed)
  const test = async (event: Event) => {
    event.preventDefault()
    if (tested === undefined) return setResult({ ok: false, error: words.noEntry })
    setResult('testing')
    try {
      setResult(await api.post<TestResult>('/api/providers/test', tested))
    } catch (error) {
      setResult({ ok: false, error: error instanceof Error ? error.message : String(error) })
    }
  }
  return (
    <>
      <section class="panel">
        <h2>{words.entryTitle}</h2>
        <form class="form" onSubmit={(event) => void test(event)}>
          <label>
            {words.provider}
            <select
              value={provider}
              onChange={(event) => {
                const chosen = event.currentTarget.value as Provider
                setProvider(chosen)
                setModel(EXAMPLES[chosen].model)
                setResult(undefined)
              }}
            >
              {PROVIDERS.map((one) => (
                <option key={one} value={one}>
                  {one}
                </option>
              ))}
            </select>
          </label>
          <label>
            {words.key}
            <input
              type="password"
              autocomplete="off"
              value={key}
              onInput={(event) => setKey(event.currentTarget.value)}
            />
            <small>{words.keyHint}</small>
          </label>
          <label>
            {words.baseUrl}
            <input
              type="url"
              value={baseUrl}
              placeholder={isCompatible ? 'http://127.0.0.1:11434/v1' : ''}
              required={isCompatible && pasted.trim() === ''}
              onInput={(event) => setBaseUrl(event.currentTarget.value)}
            />
          </label>
          <label>
            {words.modelId}
            <input value={model} required onInput={(event) => setModel(event.currentTarget.value)} />
          </label>
          <details>
            <summary>{words.pasteTitle}</summary>
            <label>
              <small>{words.pasteHint}</small>
              <textarea
                rows={6}
                spellcheck={false}
                class="mono"
                aria-label={words.pasteTitle}
                value={pasted}
                onInput={(event) => setPasted(event.currentTarget.value)}
              />
            </label>
          </details>
          <button type="submit" class="button primary" disabled={result === 'testing'}>
            {result === 'testing' ? words.testing : words.test}
          </button>
          <TestOutcome result={result} />
        </form>
      </section>
      {pasted.trim() !== '' && tested !== undefined ? (
        <Lines name={tested.name} model={tested.model} entry={keptEntry(tested)} />
      ) : (
        <Lines
          name={name}
          model={model}
          entry={{
            ...(isCompatible ? { type: provider } : {}),
            apiKey: `$${EXAMPLES[provider].variable}`,
            ...(baseUrl === '' ? {} : { baseUrl }),
          }}
        />
      )}
    </>
  )
}

function TestOutcome({ result }: { readonly result: TestResult | 'testing' | undefined }): JSX.Element {
  const words = texts.value.start
  return (
    <div role="status">
      {result !== undefined && result !== 'testing' && (
        <p class={result.ok ? 'good' : 'problem'}>
          {result.ok ? words.works(duration(result.firstByteMs)) : words.fails} {result.ok ? result.text : result.error}{' '}
          {result.code !== undefined && <code>{result.code}</code>}
        </p>
      )}
    </div>
  )
}

function Lines({ name, model, entry }: Tested): JSX.Element {
  const words = texts.value.start
  const lines = JSON.stringify({ model: `${name}/${model}`, providers: { [name]: entry } }, null, 2)
  return (
    <section class="panel">
      <h2>{words.linesTitle}</h2>
      <p>{words.lines}</p>
      <div class="with-copy">
        <pre class="code" tabIndex={0}>
          {lines}
        </pre>
        <CopyButton text={() => lines} />
      </div>
    </section>
  )
}
