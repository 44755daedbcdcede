import { errnoOf, readWhole, type Files } from '../base/files.ts'
import { GatewayError } from '../core/errors.ts'
import type { Config } from './config.ts'
import { expandEnvironment, type Environment } from './environment.ts'
import { formatProblem, keyOf, type ConfigProblem, type KeyPath } from './problem.ts'
import { toConfig, withWellKnownProviders } from './resolve.ts'
import { breaches, type RuleBreach } from './rules.ts'
import { parseSource, type ConfigSource } from './source.ts'
import { validate, withValue } from './validate.ts'

const MAX_FILE_BYTES = 1024 * 1024

export interface LoadConfigOptions {
  readonly files: Files
  /** `<home>/bridge.json`. A file that does not exist is an empty one. */
  readonly path: string
  readonly env: Environment
  /** Flags; they win over the file. */
  readonly overrides?: readonly ConfigOverride[]
  /** Names of providers that the program brings itself. */
  readonly ownProviders?: readonly string[]
  /** For commands that call no service: a variable that is not set is no problem, except where the storage is. */
  readonly withoutSecrets?: boolean
}

export interface ConfigOverride {
  /** Dotted, `listen.port`. */
  readonly key: string
  /** Where a name in it holds a dot. */
  readonly path?: readonly string[]
  readonly value: unknown
  /** What an error calls it, `--port`. */
  readonly source: string
}

export interface LoadedConfig {
  readonly config: Config
  readonly warnings: readonly ConfigProblem[]
}

/** Throws `CONFIG_INVALID` or `TOKEN_REQUIRED` with the first problem in one line. Unknown keys are warnings here. */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  const { config, problems } = await examine(options)
  const errors = problems.filter((problem) => problem.severity === 'error')
  const [first] = errors
  if (config !== undefined && first === undefined) return { config, warnings: problems }
  throw toError(first, errors.length)
}

/**
 * Every problem there is, in the order of the file; here an unknown key is an error too. No error means that `start` would
 * accept it without a warning; advice is no error.
 */
export async function checkConfig(options: CheckConfigOptions): Promise<readonly ConfigProblem[]> {
  const { config, problems, locate } = await examine(options)
  const found = config === undefined ? [] : ((await options.further?.(config)) ?? [])
  return asErrors(inOrder([...problems, ...found.map((breach) => toProblem(breach, locate))]))
}

export interface CheckConfigOptions extends LoadConfigOptions {
  /** What only the rest of the program can tell of a configuration: whether its tools, plugins and hooks exist. */
  readonly further?: (config: Config) => Promise<readonly RuleBreach[]>
}

function asErrors(problems: readonly ConfigProblem[]): readonly ConfigProblem[] {
  return problems.map((problem): ConfigProblem => (isAdvice(problem) ? problem : { ...problem, severity: 'error' }))
}

function isAdvice({ severity }: ConfigProblem): boolean {
  return severity === 'advice'
}

interface Examined {
  readonly config: Config | undefined
  readonly problems: readonly ConfigProblem[]
  readonly locate: Locate
}

/** The same for a text that is in no file yet. */
export function checkConfigText(name: string, text: string, env: Environment): readonly ConfigProblem[] {
  return asErrors(examineSource(parseSource(name, text), { env }).problems)
}

/** The configuration that a text would give. Throws as `loadConfig` does. */
export function readConfigText(name: string, text: string, env: Environment): Config {
  const { config, problems } = examineSource(parseSource(name, text), { env })
  const errors = problems.filter((problem) => problem.severity === 'error')
  if (config !== undefined && errors.length === 0) return config
  throw toError(errors[0], errors.length)
}

/** What a text would give, with nothing set beside it; undefined where it gives nothing. */
export function configOfText(name: string, text: string, env: Environment): Config | undefined {
  return examineSource(parseSource(name, text), { env }).config
}

async function examine(options: LoadConfigOptions): Promise<Examined> {
  return examineSource(parseSource(options.path, await readText(options)), options)
}

function examineSource(
  source: ConfigSource,
  options: Pick<LoadConfigOptions, 'env' | 'overrides' | 'ownProviders' | 'withoutSecrets'>,
): Examined {
  const overrides = options.overrides ?? []
  const locate = placing(source, overrides)
  if (source.problems.some((problem) => problem.severity === 'error'))
    return { config: undefined, problems: source.problems, locate }

  const overridden = overrides.reduce(
    (value, { key, path, value: given }) => withValue(value, path ?? key.split('.'), given),
    source.value,
  )
  const expanded = expandEnvironment(overridden, options.env)
  const problems: ConfigProblem[] = [...source.problems]
  for (const { path, variable } of expanded.missing) {
    if (options.withoutSecrets === true && path[0] !== 'storage') continue
    problems.push({ ...locate(path, 'error', notSet(variable)), isUnset: true })
  }
  // A text that stands for a missing variable may break a rule for texts; that is the same problem once more.
  const missing = new Set(expanded.missing.map(({ path }) => keyOf(path)))
  const { config: file, findings } = validate(expanded)
  for (const { kind, path, message } of findings) {
    if (kind === 'invalid' && missing.has(keyOf(path))) continue
    problems.push(locate(path, kind === 'unknown-key' ? 'warning' : 'error', message))
  }
  if (file === undefined) return { config: undefined, problems: inOrder(problems), locate }

  const complete = withWellKnownProviders(file, options.env)
  for (const breach of breaches(complete, options.ownProviders)) {
    if (!missing.has(keyOf(breach.path))) problems.push(toProblem(breach, locate))
  }
  return { config: toConfig(complete), problems: inOrder(problems), locate }
}

function toProblem({ path, message, code, severity = 'error' }: RuleBreach, locate: Locate): ConfigProblem {
  return { ...locate(path, severity, message), ...(code && { code }) }
}

/** The text of the file; an empty object when there is none. */
export async function readText({ files, path }: Pick<LoadConfigOptions, 'files' | 'path'>): Promise<string> {
  let bytes: Uint8Array | undefined
  try {
    bytes = await readWhole(files, path, MAX_FILE_BYTES)
  } catch (error) {
    const errno = errnoOf(error)
    const reason = errno === undefined ? `it is larger than ${MAX_FILE_BYTES} bytes` : `it cannot be read (${errno})`
    throw new GatewayError('CONFIG_INVALID', `${path}: ${reason}`, { file: path, errno }, { cause: error })
  }
  if (bytes === undefined) return '{}'
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new GatewayError('CONFIG_INVALID', `${path}: it is not UTF-8 text`, { file: path }, { cause: error })
  }
}

/** A text that merely begins with a dollar sign may be a password: only what is written like a variable is shown. */
function notSet(variable: string): string {
  return /^[A-Z_][A-Z0-9_]*$/.test(variable)
    ? `the environment variable ${variable} is not set`
    : 'the environment variable named here is not set; write $$ for a text that begins with $'
}

type Locate = (path: KeyPath, severity: ConfigProblem['severity'], message: string) => ConfigProblem

/** A value from a flag is the flag's fault; anything else is looked up in the file, or in the section that should hold it. */
function placing(source: ConfigSource, overrides: readonly ConfigOverride[]): Locate {
  return (path, severity, message) => {
    const key = keyOf(path)
    const base = { severity, code: 'CONFIG_INVALID', key, message } as const
    const flag = overrides.find((override) => key === override.key || key.startsWith(`${override.key}.`))
    if (flag !== undefined) return { ...base, source: flag.source }
    for (let length = path.length; length > 0; length--) {
      const place = source.placeOf(path.slice(0, length))
      if (place !== undefined) return { ...base, source: source.name, ...place }
    }
    return { ...base, source: source.name }
  }
}

function inOrder(problems: readonly ConfigProblem[]): ConfigProblem[] {
  return problems.toSorted(
    (a, b) => (a.line ?? Infinity) - (b.line ?? Infinity) || (a.column ?? 0) - (b.column ?? 0) || 0,
  )
}

function toError(first: ConfigProblem | undefined, count: number): GatewayError {
  if (first === undefined) return new GatewayError('CONFIG_INVALID', 'the configuration could not be read')
  const more = count > 1 ? ` (and ${count - 1} more; see \`clew config check\`)` : ''
  const { source, line, column, key } = first
  return new GatewayError(first.code, `${formatProblem(first)}${more}`, {
    file: source,
    line,
    column,
    key,
    problems: count,
  })
}
