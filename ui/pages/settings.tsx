import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../lib/api.ts'
import { texts } from '../lib/language.ts'
import type { ConfigProblem, ConfigValue } from '../lib/types.ts'
import { Failure, FilterField, Loading, useLoaded } from '../components/basics.tsx'
import { Icon } from '../components/icons.tsx'

interface Config {
  readonly values: readonly ConfigValue[]
  readonly problems: readonly ConfigProblem[]
}

/** Every key with its value and where it comes from. Secrets never leave the gateway. */
export function SettingsPage(): JSX.Element {
  const words = texts.value.settings
  const { value, error, again } = useLoaded((signal) => api.get<Config>('/api/config', signal), [])
  return (
    <div class="page-body">
      <h1>{words.title}</h1>
      {error !== undefined && <Failure error={error} again={again} />}
      {value === undefined && error === undefined && <Loading rows={8} />}
      {value !== undefined && (
        <>
          <Problems problems={value.problems} />
          <Values values={value.values} />
        </>
      )}
      <Check />
    </div>
  )
}

function Problems({ problems }: { readonly problems: readonly ConfigProblem[] }): JSX.Element {
  const words = texts.value.settings
  return (
    <section class="panel">
      <h2>{words.problems}</h2>
      {problems.length === 0 ? (
        <p class="good">
          <Icon name="check" size={16} /> {words.noProblems}
        </p>
      ) : (
        <ul class="plain-list">
          {problems.map((problem, at) => (
            <li key={at} class="problem">
              <Icon name="warning" size={16} />
              {problem.line !== undefined && ` ${words.line(problem.line, problem.column ?? 1)}: `}{' '}
              {problem.key !== undefined && <code>{problem.key}</code>} {problem.message}{' '}
              {problem.nearest !== undefined && words.nearest(problem.nearest)}
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function Values({ values }: { readonly values: readonly ConfigValue[] }): JSX.Element {
  const words = texts.value.settings
  const [filter, setFilter] = useState('')
  const [onlyChanged, setOnlyChanged] = useState(false)
  const wanted = filter.trim().toLowerCase()
  const shown = values.filter(
    (one) => one.key.toLowerCase().includes(wanted) && (!onlyChanged || one.origin !== 'default'),
  )
  return (
    <section class="panel">
      <div class="toolbar">
        <FilterField label={words.filter} value={filter} onChange={setFilter} />
        <label>
          <input
            type="checkbox"
            checked={onlyChanged}
            onChange={(event) => setOnlyChanged(event.currentTarget.checked)}
          />{' '}
          {words.onlyChanged}
        </label>
      </div>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={words.title}>
        <table class="plain-table settings-table">
          <thead>
            <tr>
              <th scope="col">{words.key}</th>
              <th scope="col">{words.value}</th>
              <th scope="col">{words.origin}</th>
              <th scope="col">{words.byDefault}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((one) => (
              <tr key={one.key}>
                <th scope="row">
                  <code>{one.key}</code>
                </th>
                <td>
                  <code>{textOfValue(one.value)}</code>
                </td>
                <td>{words.origins[one.origin]}</td>
                <td data-label={words.byDefault}>
                  <code>{one.default === undefined ? '' : textOfValue(one.default)}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function textOfValue(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function Check(): JSX.Element {
  const words = texts.value.settings
  const [text, setText] = useState('')
  const [problems, setProblems] = useState<readonly ConfigProblem[] | undefined>(undefined)
  const [error, setError] = useState<unknown>(undefined)
  const check = async (event: Event) => {
    event.preventDefault()
    try {
      setProblems((await api.post<{ problems: readonly ConfigProblem[] }>('/api/config/check', { text })).problems)
      setError(undefined)
    } catch (thrown) {
      setError(thrown)
    }
  }
  return (
    <section class="panel">
      <h2>{words.check}</h2>
      <form class="form" onSubmit={(event) => void check(event)}>
        <label>
          {words.paste}
          <textarea
            rows={8}
            spellcheck={false}
            class="mono"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="button" disabled={text.trim() === ''}>
          {words.checkButton}
        </button>
      </form>
      <div role="status">
        {problems !== undefined && <Problems problems={problems} />}
        {error !== undefined && <Failure error={error} />}
      </div>
    </section>
  )
}
