import { Ajv } from 'ajv'
import { expect, it } from 'vitest'
import { isRecord } from '../../../src/base/json.ts'
import { configSchema, describeConfig, secretsOf } from '../../../src/config/explain.ts'
import { editDistance } from '../../../src/config/known-keys.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { isSecret } from '../../../src/config/secret-keys.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'

const SECRETS = ['tok-1', 'key-2', 'head-3', 'env-4', 'mcp-5', 'ak-6', 'sk-7', 'postgres://pg-8', 'push-9']

const overrides = [
  { key: 'listen.token', value: 'tok-1', source: 'test' },
  { key: 'providers', value: { openai: { apiKey: 'key-2', headers: { 'x-a': 'head-3' } } }, source: 'test' },
  {
    key: 'agent.mcp.servers',
    value: { m: { command: 'm', env: { A: 'env-4' }, headers: { B: 'mcp-5' } } },
    source: 'test',
  },
  {
    key: 'channels.xiaoyi',
    value: { ak: 'ak-6', sk: 'sk-7', push: { url: 'https://p.example', sk: 'push-9' } },
    source: 'test',
  },
  { key: 'storage', value: { kind: 'postgres', url: 'postgres://pg-8' }, source: 'test' },
  { key: 'webhook_url', value: 'wss://me:pass@hub.example/ws?token=abc', source: 'test' },
]

it('shows the configuration without a single secret', async () => {
  const { config } = await loadConfig({ files: new MemoryFiles(), path: '/none/bridge.json', env: {}, overrides })
  const shown = JSON.stringify(describeConfig(config))
  for (const secret of [...SECRETS, 'pass', 'abc']) expect(shown).not.toContain(secret)
  expect(shown).toContain('"port":8080')
  expect(shown).toContain('"webhook_url":"wss://[redacted]@hub.example/ws?token=[redacted]"')
  expect(secretsOf(config).toSorted()).toEqual(SECRETS.toSorted())
})

it('publishes a JSON Schema that a validator accepts, with a description for every key', () => {
  const schema = configSchema()
  const validate = new Ajv({ strict: true, strictTypes: false, allowUnionTypes: true }).compile(schema)
  expect(validate({ listen: { port: 1 }, model: 'demo' })).toBe(true)
  expect(validate({ listen: { port: 'x' } })).toBe(false)
  expect(validate({ lisen: {} })).toBe(false)
  expect(undescribed(schema, '')).toEqual([])
})

/** Keys of any depth whose schema says nothing about them; the four prices are described by their section. */
function undescribed(node: unknown, path: string): string[] {
  if (!isRecord(node)) return []
  const properties = isRecord(node['properties']) ? Object.entries(node['properties']) : []
  const inner = properties.flatMap(([key, child]) => {
    const missing = isRecord(child) && child['description'] === undefined && child['const'] === undefined
    return [...(missing && !path.endsWith('price') ? [`${path}.${key}`] : []), ...undescribed(child, `${path}.${key}`)]
  })
  return [
    ...inner,
    ...undescribed(node['additionalProperties'], `${path}.*`),
    ...undescribed(node['items'], `${path}[]`),
  ]
}

it('marks in the JSON Schema what it never shows', () => {
  expect(writeOnly(configSchema(), []).filter((path) => !isSecret(path))).toEqual([])
  expect(isSecret(['listen', 'port'])).toBe(false)
})

function writeOnly(node: unknown, path: string[]): string[][] {
  if (!isRecord(node)) return []
  if (node['writeOnly'] === true) return [path]
  const properties = isRecord(node['properties']) ? Object.entries(node['properties']) : []
  const alternatives = Array.isArray(node['oneOf']) ? node['oneOf'] : []
  return [
    ...properties.flatMap(([key, child]) => writeOnly(child, [...path, key])),
    ...alternatives.flatMap((child) => writeOnly(child, path)),
    ...writeOnly(node['additionalProperties'], [...path, 'any']),
  ]
}

it.each([
  ['', '', 0],
  ['port', 'port', 0],
  ['prot', 'port', 1],
  ['token', 'tokens', 1],
  ['abc', 'xyz', 3],
  ['', 'abc', 3],
])('counts the edits from %j to %j as %i', (a, b, distance) => {
  expect(editDistance(a, b)).toBe(distance)
  expect(editDistance(b, a)).toBe(distance)
})
