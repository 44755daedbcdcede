import { describe, expect, it } from 'vitest'
import {
  checkConfig,
  checkConfigText,
  loadConfig,
  type ConfigOverride,
  type LoadedConfig,
} from '../../../src/config/load.ts'
import { formatProblem } from '../../../src/config/problem.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'

const path = '/home/bridge.json'

interface Given {
  readonly env?: Record<string, string>
  readonly overrides?: readonly ConfigOverride[]
}

async function filesWith(text: string | undefined): Promise<MemoryFiles> {
  const files = new MemoryFiles()
  await files.makeDirectory('/home')
  if (text !== undefined) files.plant(path, text)
  return files
}

async function load(text: string | undefined, given: Given = {}): Promise<LoadedConfig> {
  return loadConfig({ files: await filesWith(text), path, env: {}, ...given })
}

async function failure(text: string, given: Given = {}): Promise<{ code: string; message: string; facts: object }> {
  return load(text, given).then(
    () => expect.fail('the configuration was accepted'),
    (error) => error,
  )
}

async function problems(text: string, given: Given = {}): Promise<string[]> {
  const found = await checkConfig({ files: await filesWith(text), path, env: {}, ...given })
  return found.map(formatProblem)
}

it.each(['x', 'localhost:5432', 'http://db/clew'])('an address of no PostgreSQL is refused: %s', async (url) => {
  const problems = checkConfigText('bridge.json', JSON.stringify({ storage: { kind: 'postgres', url } }), {})
  expect(problems.map(({ key, message }) => `${key}: ${message}`)).toEqual([
    'storage.url: is not an address of PostgreSQL: postgres://USER:PASSWORD@HOST:5432/DATABASE',
  ])
})

describe('without a file', () => {
  it('gives every default', async () => {
    const { config, warnings } = await load(undefined)
    expect(warnings).toEqual([])
    expect(config).toMatchSnapshot()
  })

  it('gives what cannot be changed', async () => {
    const { config } = await load('{"agent":{"tools":["time"]}}')
    expect(() => Object.assign(config.listen, { port: 1 })).toThrow('read only')
    expect(() => Object.assign(config.agent.tools, ['x'])).toThrow('read only')
  })
})

describe('the file', () => {
  it('may have comments, trailing commas and a byte order mark', async () => {
    const { config } = await load('\uFEFF// ours\n{ /* here */ "agent_id": "helper", "task": { "max_rounds": 3, }, }')
    expect(config.agent_id).toBe('helper')
    expect(config.task).toMatchObject({ max_rounds: 3, auto_cleanup_enabled: true })
  })

  it('accepts the example of the documentation', async () => {
    const env = {
      CLEW_TOKEN: 'a-token-of-the-docs',
      ANTHROPIC_API_KEY: 'a',
      OPENAI_API_KEY: 'o',
      GEMINI_API_KEY: 'g',
      MISTRAL_API_KEY: 'm',
      XIAOYI_AK: 'x',
      XIAOYI_SK: 'y',
    }
    const { config, warnings } = await load(EXAMPLE, { env })
    expect(warnings).toEqual([])
    expect(config.listen.token).toBe('a-token-of-the-docs')
    expect(Object.entries(config.providers).map(([name, { type }]) => [name, type])).toEqual([
      ['anthropic', 'anthropic'],
      ['openai', 'openai-responses'],
      ['google', 'google'],
      ['mistral', 'mistral'],
      ['my-local', 'openai-compatible'],
    ])
    expect(config.contextPruning.ttl).toBe(300_000)
    expect(config.channels.webhook.dms['user-abc']?.historyLimit).toBe(10)
    expect(config.channels.xiaoyi).toMatchObject({ enabled: true, ak: 'x', sk: 'y' })
    expect(config.model).toEqual(['demo'])
  })

  it.each([
    ['', 'bridge.json:1:1: the file is empty; write {} or remove it'],
    ['[]', 'bridge.json:1:1: the file must hold one object: { … }'],
    ['{\n  "listen": { "port": 80 }\n  "model": "demo"\n}', 'bridge.json:3:3: a comma is expected here'],
    [
      '{ "agent_id": main }',
      'bridge.json:1:15: this is not a value; expected an object, a list, a text in double quotes, a number, true, false or null',
    ],
    ['{ "agent_id": "a"', 'bridge.json:1:18: a closing brace is expected here'],
  ])('that is broken (%j) is named with line and column', async (text, message) => {
    const error = await failure(text)
    expect(error.code).toBe('CONFIG_INVALID')
    expect(error.message).toBe(`/home/${message}`)
  })

  it('that cannot be read is an error of its own', async () => {
    const files = await filesWith(undefined)
    await files.makeDirectory(path)
    await expect(loadConfig({ files, path, env: {} })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await expect(load('x'.repeat(2_000_000))).rejects.toThrow('it is larger than 1048576 bytes')
  })

  it('keeps a key called __proto__ a key', async () => {
    expect(await problems('{ "__proto__": { "listen": { "port": 1 } } }')).toEqual([
      '/home/bridge.json:1:16: __proto__: unknown key',
    ])
  })

  it('is told about a key that stands twice', async () => {
    const { config, warnings } = await load('{ "agent_id": "a",\n  "agent_id": "b" }')
    expect(config.agent_id).toBe('b')
    expect(warnings.map(formatProblem)).toEqual([
      '/home/bridge.json:2:3: agent_id: the key stands here twice; the last one counts',
    ])
  })
})

describe('values of the wrong kind', () => {
  it.each([
    ['"listen": { "port": "eight" }', 'listen.port: expected a whole number from 0 to 65535, found the text "eight"'],
    ['"listen": { "port": 70000 }', 'listen.port: expected a whole number from 0 to 65535, found 70000'],
    ['"listen": { "port": 80.5 }', 'listen.port: expected a whole number from 0 to 65535, found 80.5'],
    ['"listen": []', 'listen: expected an object, found a list'],
    ['"listen": null', 'listen: expected an object, found null'],
    [
      '"session_scope": "each"',
      'session_scope: expected "per-sender", "global" or "per-connection", found the text "each"',
    ],
    ['"preserve_case": "yes"', 'preserve_case: expected true or false, found the text "yes"'],
    [
      '"webhook_url": "http://x/?token=abc"',
      'webhook_url: expected an address beginning with ws:// or wss://, found an address beginning with http://',
    ],
    ['"model": 3', 'model: expected "demo", "<provider>/<model id>", or a list of such names, found 3'],
    ['"model": ["demo", "x"]', 'model[1]: expected "demo" or "<provider>/<model id>", found the text "x"'],
    [
      '"contextPruning": { "ttl": "soon" }',
      'contextPruning.ttl: expected a duration such as "90s", "5m" or "1h", found the text "soon"',
    ],
    ['"storage": { "kind": "sqlite" }', 'storage.kind: expected "files" or "postgres", found the text "sqlite"'],
    [
      '"storage": { "kind": "postgres", "url": "postgres://h/d", "schema": "My-Schema" }',
      'storage.schema: expected a name of small letters, digits and _ that does not begin with a digit or pg_, found the text "My-Schema"',
    ],
    [
      '"storage": { "kind": "postgres", "url": "postgres://h/d", "schema": "pg_clew" }',
      'storage.schema: expected a name of small letters, digits and _ that does not begin with a digit or pg_, found the text "pg_clew"',
    ],
    ['"storage": { "kind": "postgres" }', 'storage.url: expected a text that is not empty, found nothing'],
    [
      '"providers": { "a": { "type": "x", "apiKey": "sk-very-secret" } }',
      'providers.a.type: expected "anthropic", "openai-responses", "openai-completions", "openai-compatible", "google" or "mistral", found the text "x"',
    ],
    ['"providers": { "a b": {} }', 'providers.a b: a name without spaces and slashes is expected'],
    ['"listen": { "token": 12345 }', 'listen.token: expected a text that is not empty, found a number'],
    ['"listen": { "token": "" }', 'listen.token: expected a text that is not empty, found an empty text'],
    ['"task": { "max_rounds": 0 }', 'task.max_rounds: expected a whole number of at least 1, found 0'],
    [
      '"agent": { "tools": "time" }',
      'agent.tools: expected a list, each item a text that is not empty, found the text "time"',
    ],
    ['"compaction": { "maxHistoryShare": 2 }', 'compaction.maxHistoryShare: expected a number from 0 to 1, found 2'],
  ])('are named with place, key, what is allowed and what was found: %s', async (member, message) => {
    const found = await problems(`{\n  ${member}\n}`)
    expect(found).toHaveLength(1)
    expect(found[0]?.replace(/^\/home\/bridge.json:2:\d+: /, '')).toBe(message)
  })

  it('are reported all at once by check, and the first with their number by load', async () => {
    const text = '{\n "listen": { "port": -1 },\n "queue": { "mode": "wait" },\n "limits": { "connections": "many" }\n}'
    expect(await problems(text)).toHaveLength(3)
    const error = await failure(text)
    expect(error.message).toBe(
      '/home/bridge.json:2:22: listen.port: expected a whole number from 0 to 65535, found -1 (and 2 more; see `clew config check`)',
    )
    expect(error.facts).toEqual({ file: path, line: 2, column: 22, key: 'listen.port', problems: 3 })
  })
})

describe('unknown keys', () => {
  it.each([
    ['"agentid": "x"', 'agentid: unknown key; did you mean agent_id?'],
    ['"listen": { "prot": 80 }', 'listen.prot: unknown key; did you mean port?'],
    ['"maxRounds": 3', 'maxRounds: unknown key; did you mean task.max_rounds?'],
    ['"providers": { "openai": { "apikey": "x" } }', 'providers.openai.apikey: unknown key; did you mean apiKey?'],
    ['"channels": { "telegram": {} }', 'channels.telegram: unknown key'],
    ['"storage": { "kind": "files", "uri": "x" }', 'storage.uri: unknown key; did you mean url?'],
  ])('are named with the nearest known one: %s', async (member, message) => {
    const { warnings } = await load(`{ ${member} }`)
    expect(warnings.map(({ severity, key, message: text }) => [severity, `${key}: ${text}`])).toEqual([
      ['warning', message],
    ])
    const checked = await problems(`{ ${member} }`)
    expect(checked[0]).toMatch(/^\/home\/bridge.json:1:\d+: /)
  })

  it('says that exec without an allow-list stays off', async () => {
    const { warnings } = await load('{ "agent": { "tools": ["time", "exec"] } }')
    expect(warnings.map(formatProblem)).toEqual([
      '/home/bridge.json:1:32: agent.tools[1]: exec stays off until agent.exec.allow lists the programs it may run, for example ["ls"]',
    ])
    const allowed = await load('{ "agent": { "tools": ["exec"], "exec": { "allow": ["ls"] } } }')
    expect(allowed.warnings).toEqual([])
  })

  it('are errors in check and do not hide other problems', async () => {
    const files = await filesWith('{ "foreign": 1, "listen": { "port": "x", "other": 2 } }')
    const found = await checkConfig({ files, path, env: {} })
    expect(found.map(({ severity, key }) => [severity, key])).toEqual([
      ['error', 'foreign'],
      ['error', 'listen.port'],
      ['error', 'listen.other'],
    ])
  })
})

describe('the environment', () => {
  it('gives values of the form $NAME anywhere, also for numbers and flags', async () => {
    const text =
      '{ "agent_id": "$AGENT", "preserve_case": "$FOLD", "listen": { "port": "$PORT", "allowed_origins": ["$ORIGIN"] } }'
    const { config } = await load(text, {
      env: { AGENT: 'a', FOLD: 'true', PORT: '9000', ORIGIN: 'https://x.example' },
    })
    expect(config).toMatchObject({
      agent_id: 'a',
      preserve_case: true,
      listen: { port: 9000, allowed_origins: ['https://x.example'] },
    })
  })

  it('leaves other dollars alone, and $$NAME is the text $NAME', async () => {
    const { config } = await load('{ "agent_id": "$$HOME", "uid": "$5", "agent": { "system_prompt": "pay $HOME" } }')
    expect([config.agent_id, config.uid, config.agent.system_prompt]).toEqual(['$HOME', '$5', 'pay $HOME'])
  })

  it('is told which variable is missing, and an empty one counts as missing', async () => {
    for (const env of [{}, { CLEW_TOKEN: '' }]) {
      expect((await failure('{ "listen": {\n "token": "$CLEW_TOKEN" } }', { env })).message).toBe(
        '/home/bridge.json:2:11: listen.token: the environment variable CLEW_TOKEN is not set',
      )
    }
    expect(await problems('{ "webhook_url": "$URL" }')).toEqual([
      '/home/bridge.json:1:18: webhook_url: the environment variable URL is not set',
    ])
  })

  it('never sees its values in an error', async () => {
    expect(await problems('{ "listen": { "port": "$PORT" } }', { env: { PORT: 'hunter2' } })).toEqual([
      '/home/bridge.json:1:23: listen.port: expected a whole number from 0 to 65535, found the value of $PORT',
    ])
  })

  it('is not fooled by names every object has', async () => {
    expect((await failure('{ "uid": "$constructor" }')).message).toContain('is not set')
  })

  it('makes every well-known provider whose usual variable is set, once, whatever the model is', async () => {
    const env = { ANTHROPIC_API_KEY: 'key-a', GEMINI_API_KEY: 'key-g', OPENAI_API_KEY: '' }
    const { config } = await load('{}', { env })
    expect(Object.keys(config.providers)).toEqual(['anthropic', 'google'])
    expect(config.providers['anthropic']).toMatchObject({ type: 'anthropic', apiKey: 'key-a' })
  })

  it('never sends a key of the environment to an address from the file', async () => {
    const file = '{ "providers": { "anthropic": { "baseUrl": "http://127.0.0.1:9" } } }'
    const { config } = await load(file, { env: { ANTHROPIC_API_KEY: 'key-a' } })
    expect(config.providers['anthropic']).not.toHaveProperty('apiKey')
  })
})

describe('flags', () => {
  const flag = (key: string, value: unknown, source: string): Given => ({ overrides: [{ key, value, source }] })

  it('win over the file', async () => {
    const { config } = await load('{ "listen": { "port": 1, "host": "localhost" } }', flag('listen.port', 2, '--port'))
    expect(config.listen).toMatchObject({ port: 2, host: 'localhost' })
  })

  it('are named when they are wrong', async () => {
    expect((await failure('{}', flag('listen.port', 99_999, '--port'))).message).toBe(
      '--port: listen.port: expected a whole number from 0 to 65535, found 99999',
    )
  })
})

describe('keys that need each other', () => {
  it.each(['0.0.0.0', '::', '192.168.1.5', 'my-host', '127.evil.example', '10.0.0.1'])(
    '%s needs a token',
    async (host) => {
      const error = await failure(`{ "listen": { "host": "${host}" } }`)
      expect(error.code).toBe('TOKEN_REQUIRED')
      expect(error.message).toContain('set listen.token')
      await load(`{ "listen": { "host": "${host}", "token": "sixteen-or-more!" } }`)
      await load(`{ "listen": { "host": "${host}", "tokens": { "app": { "token": "sixteen-or-more!" } } } }`)
    },
  )

  it.each([
    '"fifteen-signs.."',
    '"                    "',
    '"a-token-with-one blank"',
    '"\\t"',
    '"ein-schlüssel-für-alle"',
  ])('the token %s opens nothing beyond loopback', async (token) => {
    const open = `{ "listen": { "host": "0.0.0.0", "token": ${token} } }`
    const error = await failure(open)
    expect(['TOKEN_REQUIRED', 'CONFIG_INVALID']).toContain(error.code)
    expect(error.message).not.toContain(token.slice(1, -1))
  })

  it('a short token on loopback is advice, which holds nothing up', async () => {
    const { warnings } = await load('{ "listen": { "token": "short" } }')
    expect(warnings).toMatchObject([{ severity: 'advice', key: 'listen.token' }])
    const files = await filesWith('{ "listen": { "token": "short" } }')
    expect(await checkConfig({ files, path, env: {} })).toMatchObject([{ severity: 'advice' }])
  })

  it('two clients with one token are a mistake', async () => {
    const token = '{ "token": "sixteen-or-more!" }'
    const error = await failure(`{ "listen": { "tokens": { "a": ${token}, "b": ${token} } } }`)
    expect(error.message).toContain('listen.tokens.b.token: the same token')
    expect(error.message).not.toContain('sixteen')
  })

  it.each(['127.0.0.1', '127.8.8.8', 'localhost', '::1', '[::1]'])('%s needs no token', async (host) => {
    await load(`{ "listen": { "host": "${host}" } }`)
  })

  it.each([
    ['{ "model": "acme/big" }', 'model: acme/big needs an entry providers.acme'],
    [
      '{ "model": "anthropic/claude" }',
      'model: anthropic/claude needs an entry providers.anthropic, or set ANTHROPIC_API_KEY',
    ],
    [
      '{ "model": ["demo", "openai/gpt"], "providers": { "openai": {} } }',
      'model[1]: openai/gpt needs providers.openai.apiKey, or set OPENAI_API_KEY',
    ],
    [
      '{ "providers": { "acme": {} } }',
      'providers.acme: acme is not a name we know, so it needs a baseUrl, and a type unless it is openai-compatible',
    ],
    [
      '{ "providers": { "acme": { "type": "openai-compatible" } } }',
      'providers.acme: an openai-compatible provider needs a baseUrl',
    ],
    [
      '{ "providers": { "openai": { "type": "openai-completions", "api": "responses" } } }',
      'providers.openai.api: api "responses" contradicts type "openai-completions"',
    ],
    [
      '{ "agent": { "mcp": { "servers": { "a": {} } } } }',
      'agent.mcp.servers.a: an MCP server needs either command or url',
    ],
    [
      '{ "channels": { "xiaoyi": { "enabled": true, "ak": "a", "sk": "s" } } }',
      'channels.xiaoyi: the XiaoYi channel is enabled and needs agentId',
    ],
    [
      '{ "channels": { "xiaoyi": { "enabled": true, "ak": "a", "sk": "s", "agentId": "1", "wsUrl1": "ws://far.example/" } } }',
      'channels.xiaoyi.wsUrl1: ws:// would send the signature unencrypted to another machine; use wss://, or set "tls": "plain"',
    ],
    [
      '{ "contextPruning": { "softTrim": { "maxChars": 10 } } }',
      'contextPruning.softTrim: headChars and tailChars together must not exceed maxChars',
    ],
  ])('%s is refused', async (text, message) => {
    expect((await problems(text)).map((line) => line.replace(/^\S+ /, ''))).toEqual([message])
  })

  it('knows what runs on this machine without a key, and servers by their address', async () => {
    const { config } = await load(
      '{ "model": ["ollama/llama3", "acme/m"], "providers": { "acme": { "baseUrl": "http://x/v1" } } }',
    )
    expect(config.providers).toMatchObject({
      ollama: { type: 'openai-compatible' },
      acme: { type: 'openai-compatible' },
    })
  })

  it('lets a well-known provider live on its usual variable, but never sends that key elsewhere', async () => {
    const env = { OPENAI_API_KEY: 'sk-mine' }
    const { config } = await load('{ "model": "openai/gpt-5" }', { env })
    expect(config.providers['openai']).toMatchObject({ type: 'openai-responses', apiKey: 'sk-mine', maxRetries: 3 })
    const proxied = await load(
      '{ "model": "openai/gpt-5", "providers": { "openai": { "baseUrl": "http://x/v1", "api": "completions" } } }',
      { env },
    )
    expect(proxied.config.providers['openai']).not.toHaveProperty('apiKey')
    expect(proxied.config.providers['openai']?.type).toBe('openai-completions')
  })
})

const EXAMPLE = `// <home>/bridge.json
{
  "webhook_url": "ws://localhost:8080/ws",
  "agent_id": "main",
  "session_scope": "per-sender",
  "preserve_case": false,
  "listen": { "host": "127.0.0.1", "port": 8080, "token": "$CLEW_TOKEN", "allowed_origins": [] },
  "model": "demo",
  "providers": {
    "anthropic": { "apiKey": "$ANTHROPIC_API_KEY" },
    "openai":    { "apiKey": "$OPENAI_API_KEY", "baseUrl": "https://api.openai.com/v1", "api": "responses" },
    "google":    { "apiKey": "$GEMINI_API_KEY" },
    "mistral":   { "apiKey": "$MISTRAL_API_KEY" },
    "my-local":  { "type": "openai-compatible", "baseUrl": "http://127.0.0.1:11434/v1" }
  },
  "agent": { "system_prompt": "…", "tools": ["time", "calculator", "files", "fetch"], "mcp": { "servers": {} } },
  "task": { "auto_cleanup_enabled": true, "max_rounds": 16 },
  "queue": { "mode": "queue" },
  "channels": {
    "webhook": { "historyLimit": 50, "dmHistoryLimit": 50, "dms": { "user-abc": { "historyLimit": 10 } } },
    "xiaoyi":  { "enabled": true, "ak": "$XIAOYI_AK", "sk": "$XIAOYI_SK", "agentId": "…",
                 "wsUrl1": "wss://hag.cloud.huawei.com/openclaw/v1/ws/link", "wsUrl2": "wss://116.63.174.231/openclaw/v1/ws/link" }
  },
  "compaction": { "mode": "safeguard", "maxHistoryShare": 0.5 },
  "contextPruning": { "mode": "cache-ttl", "ttl": "5m" },
  "limits": {}, "shutdown": { "drain_ms": 10000 }, "hooks": [],
  "storage": { "kind": "files" }
}`
