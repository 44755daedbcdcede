import { isRecord } from '../../src/base/json.ts'
import { configSchema } from '../../src/config/explain.ts'

type Schema = Readonly<Record<string, unknown>>

interface Row {
  readonly key: string
  readonly allowed: string
  readonly initial: string
  readonly meaning: string
}

/** The longest a timer can wait; nobody wants to read it as a limit. */
const LONGEST_TIMER_MS = 2_147_483_647

/** What a schema cannot say. */
const NOTES: Readonly<Record<string, string>> = {
  storage:
    'What the keys of PostgreSQL mean for operators is in [docs/cluster.md](cluster.md). Only `storage.kind` counts with files.',
  channels: 'XiaoYi keys without a default here have the one [docs/channels/xiaoyi.md](channels/xiaoyi.md) names.',
}

/** `docs/configuration.md` as it has to be; `npm run docs:config` writes it and a test compares. */
export function configDocs(): string {
  const entries = Object.entries(schemas(configSchema()['properties']))
  const single = entries.filter(([name, schema]) => name !== '$schema' && childrenOf(name, schema).length === 0)
  const sections = entries.filter(([name, schema]) => childrenOf(name, schema).length > 0)
  return `${[
    '# Configuration',
    '',
    'Generated from the schema (`clew config schema`) by `npm run docs:config`; do not edit.',
    '',
    'The file is `<home>/bridge.json`. Every key is optional; comments and trailing commas are allowed. A text of the form `"$NAME"` is read from the environment: a',
    'variable that is missing or empty is an error, and `"$$NAME"` is the text `$NAME`. `clew config check` lists every problem; `clew start` accepts unknown keys with a',
    'warning. [`examples/bridge.json`](../examples/bridge.json) is a commented file to copy from. Put `clew config schema > bridge.schema.json` next to your file and',
    '`"$schema": "./bridge.schema.json"` into it, and editors complete and check it.',
    '',
    '## Top level',
    '',
    ...table(single.map(([name, schema]) => rowOf(name, schema))),
    ...sections.flatMap(([name, schema]) => section(name, schema)),
  ].join('\n')}\n`
}

function section(name: string, schema: Schema): string[] {
  const note = NOTES[name] === undefined ? [] : ['', NOTES[name]]
  return ['', `## ${name}`, '', text(schema['description']), ...note, '', ...table(leaves(name, schema, ''))]
}

/** A key without words of its own has those of the section around it. */
function leaves(key: string, schema: Schema, around: string): Row[] {
  const children = childrenOf(key, schema)
  const meaning = text(schema['description']) || around
  if (children.length === 0) return [rowOf(key, { ...schema, description: meaning })]
  return children.flatMap(([name, child]) => leaves(name, child, meaning))
}

/** Keys inside an object, of the values of a map (`<name>`), or of the items of a list (`[]`). */
function childrenOf(key: string, schema: Schema): (readonly [string, Schema])[] {
  const own = Object.entries(schemas(schema['properties'])).map(([name, child]) => [`${key}.${name}`, child] as const)
  const inside = [
    [`${key}.<name>`, schema['additionalProperties']],
    [`${key}[]`, schema['items']],
  ] as const
  const nested = inside.flatMap(([name, child]) =>
    isRecord(child) && isRecord(child['properties']) ? childrenOf(name, child) : [],
  )
  const variants = Array.isArray(schema['oneOf']) ? schema['oneOf'].filter(isRecord) : []
  const names = new Map(variants.flatMap((variant) => childrenOf(key, variant)))
  const merged = [...names].map(([name, child]) => [name, kindsOf(name, child, variants)] as const)
  return [...own, ...nested, ...merged]
}

/** The key that tells variants apart allows what each of them wants there. */
function kindsOf(name: string, child: Schema, variants: readonly Schema[]): Schema {
  const last = name.slice(name.lastIndexOf('.') + 1)
  const constants = variants.flatMap((variant) => {
    const value = schemas(variant['properties'])[last]?.['const']
    return value === undefined ? [] : [value]
  })
  return constants.length < 2 ? child : { enum: constants, default: constants[0], description: 'Which storage.' }
}

function rowOf(key: string, schema: Schema): Row {
  const initial = 'default' in schema ? `\`${JSON.stringify(schema['default'])}\`` : ''
  const isSecret = schema['writeOnly'] === true ? ' Never printed.' : ''
  return { key, allowed: allowedOf(schema), initial, meaning: `${text(schema['description'])}${isSecret}` }
}

function allowedOf(schema: Schema): string {
  if (typeof schema['title'] === 'string') return schema['title']
  if (Array.isArray(schema['enum'])) return schema['enum'].map((value) => `\`${JSON.stringify(value)}\``).join(', ')
  const { type, minimum, maximum, items } = schema
  if (type === 'integer' || type === 'number') return range(type, minimum, maximum)
  if (type === 'array') return `list, each ${isRecord(items) ? allowedOf(items) : 'a value'}`
  if (type === 'object') return 'map of texts'
  if (type === 'boolean') return 'true, false'
  return 'text'
}

function range(type: string, minimum: unknown, maximum: unknown): string {
  const name = type === 'integer' ? 'whole number' : 'number'
  const from = typeof minimum === 'number' ? ` from ${minimum}` : ''
  const to = typeof maximum === 'number' && maximum < LONGEST_TIMER_MS ? ` to ${maximum}` : ''
  return `${name}${from}${to}`
}

function table(rows: readonly Row[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.map(escaped).join(' | ')} |`
  return [
    line(['key', 'allowed', 'default', 'meaning']),
    line(['---', '---', '---', '---']),
    ...rows.map(({ key, allowed, initial, meaning }) => line([`\`${key}\``, allowed, initial, meaning])),
  ]
}

/** Angle brackets outside code would be taken for HTML. */
function escaped(cell: string): string {
  const safe = cell.replaceAll('|', '\\|')
  return cell.startsWith('`') ? safe : safe.replaceAll('<', '\\<')
}

function schemas(value: unknown): Readonly<Record<string, Schema>> {
  if (!isRecord(value)) return {}
  return Object.fromEntries(Object.entries(value).filter((pair): pair is [string, Schema] => isRecord(pair[1])))
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
