import { isRecord, type JsonObject, type JsonValue } from '../base/json.ts'
import type { Files } from '../base/files.ts'
import type { Config, ProviderConfig } from './config.ts'
import type { Environment } from './environment.ts'
import { describeConfig } from './explain.ts'
import { checkConfigText, configOfText, readText } from './load.ts'
import { keyOf, type ConfigProblem, type KeyPath } from './problem.ts'
import { toConfig } from './resolve.ts'
import { isSecret } from './secret-keys.ts'
import { parseSource } from './source.ts'
import { validate } from './validate.ts'

/** Every key with its value, where it comes from and its default. A secret is only said to be set. */
export async function describeValues(
  files: Files,
  path: string,
  config: Config,
  env: Environment,
): Promise<JsonObject> {
  const text = await readText({ files, path }).catch(() => '{}')
  const written = parseSource(path, text).value
  const defaults = new Map(leavesOf(describeConfig(defaultConfig())).map(({ path: at, value }) => [keyOf(at), value]))
  const ofFile = configOfText(path, text, env)
  const bySetting = new Map(
    ofFile === undefined ? [] : leavesOf(describeConfig(ofFile)).map(({ path: at, value }) => [keyOf(at), value]),
  )
  const values = leavesOf(describeConfig(config)).map(({ path: at, value }) => {
    const key = keyOf(at)
    const raw = valueAt(written, at)
    // An entry that has a name, such as a provider's, has defaults of its own.
    const byDefault = defaults.get(key) ?? (raw === undefined && !isSecret(at) ? bySetting.get(key) : undefined)
    return {
      key,
      value: isSecret(at) ? secretText(raw) : value,
      origin: isFromEnvironment(at, raw, bySetting.get(key)) ? 'environment' : originOf(raw, value, byDefault),
      ...(byDefault === undefined ? {} : { default: byDefault }),
    }
  })
  return { values, problems: problemRows(checkConfigText(path, text, env)) }
}

export function checkText(text: string, env: Environment): JsonObject {
  return { problems: problemRows(checkConfigText('bridge.json', text, env)) }
}

/** A provider's entry as `bridge.json` would have it; a text says what is wrong with it. */
export function checkProviderEntry(name: string, entry: JsonObject): ProviderConfig | string {
  const { config, findings } = validate({
    value: { providers: { [name]: entry } },
    missing: [],
    fromEnvironment: new Map(),
  })
  const [first] = findings
  if (first !== undefined) return `${keyOf(first.path)}: ${first.message}`
  const provider = config === undefined ? undefined : toConfig(config).providers[name]
  return provider ?? 'the entry is not a provider'
}

function defaultConfig(): Config {
  const { config } = validate({ value: {}, missing: [], fromEnvironment: new Map() })
  if (config === undefined) throw new Error('the defaults are not a configuration')
  return toConfig(config)
}

function problemRows(problems: readonly ConfigProblem[]): JsonObject[] {
  return problems.map(({ line, column, key, message, severity }) => {
    const nearest = /did you mean ([\w.$-]+)\?/u.exec(message)?.[1]
    return {
      severity,
      ...(line === undefined ? {} : { line, column: column ?? 1 }),
      key,
      message,
      ...(nearest === undefined ? {} : { nearest }),
    }
  })
}

interface Leaf {
  readonly path: KeyPath
  readonly value: JsonValue
}

function leavesOf(value: JsonValue, path: KeyPath = []): readonly Leaf[] {
  if (isRecord(value) && Object.keys(value).length > 0)
    return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner as JsonValue, [...path, key]))
  return path.length === 0 ? [] : [{ path, value }]
}

function valueAt(value: unknown, path: KeyPath): unknown {
  let found: unknown = value
  for (const part of path) found = isRecord(found) ? found[String(part)] : undefined
  return found
}

/** A key that is written as a variable, or a well-known one that is in no file. */
function isFromEnvironment(path: KeyPath, raw: unknown, ofFile: JsonValue | undefined): boolean {
  if (raw === undefined) return isSecret(path) && ofFile !== undefined
  return typeof raw === 'string' && raw.startsWith('$')
}

function originOf(raw: unknown, value: JsonValue, byDefault: JsonValue | undefined): string {
  if (raw !== undefined) return 'file'
  return JSON.stringify(value) === JSON.stringify(byDefault) ? 'default' : 'flag'
}

function secretText(raw: unknown): string {
  return typeof raw === 'string' && /^\$\w+$/u.test(raw) ? `set, from ${raw}` : 'set'
}
