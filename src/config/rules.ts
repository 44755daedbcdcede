import { knownProvider, providerTypeOf } from '../core/known-providers.ts'
import type { ConfigProblem, KeyPath } from './problem.ts'
import { modelsOf, providerOf } from './resolve.ts'
import type { FileConfig } from './schema.ts'

export interface RuleBreach {
  readonly path: KeyPath
  readonly message: string
  readonly code?: ConfigProblem['code']
  /** An error unless it says otherwise. */
  readonly severity?: ConfigProblem['severity']
}

/** What no single key shows: keys that need each other, or exclude each other. */
export function breaches(file: FileConfig, ownProviders: readonly string[] = []): readonly RuleBreach[] {
  return [
    ...listen(file),
    ...providers(file),
    ...models(file, ownProviders),
    ...mcpServers(file),
    ...tools(file),
    ...xiaoyi(file),
    ...pruning(file),
    ...storage(file),
  ]
}

/** What the driver takes; anything else it would look up as the name of a machine, for ever. */
const DATABASE_ADDRESS = /^(?:postgres(?:ql)?:\/\/|socket:|\/)/

function* storage({ storage: kept }: FileConfig): Generator<RuleBreach> {
  if (kept.kind === 'postgres' && !DATABASE_ADDRESS.test(kept.url))
    yield {
      path: ['storage', 'url'],
      message: 'is not an address of PostgreSQL: postgres://USER:PASSWORD@HOST:5432/DATABASE',
    }
}

const MIN_TOKEN_CHARS = 16

function* listen({ listen }: FileConfig): Generator<RuleBreach> {
  const isOpen = !isLoopback(listen.host)
  const tokens = [
    ...(listen.token === undefined ? [] : [{ path: ['listen', 'token'], token: listen.token }]),
    ...Object.entries(listen.tokens).map(([name, { token }]) => ({ path: ['listen', 'tokens', name, 'token'], token })),
  ]
  if (isOpen && tokens.length === 0) {
    yield {
      path: ['listen', 'host'],
      code: 'TOKEN_REQUIRED',
      message: `${listen.host} can be reached from other machines: set listen.token (for example to "$CLEW_TOKEN"), or listen on 127.0.0.1`,
    }
  }
  const seen = new Set<string>()
  for (const { path, token } of tokens) {
    if (seen.has(token))
      yield { path, message: 'the same token stands elsewhere under listen; give each client its own' }
    seen.add(token)
    yield* tokenStrength(path, token, isOpen)
  }
}

/** A token travels in a header, which cannot carry blanks at its ends, nor control characters. */
function* tokenStrength(path: KeyPath, token: string, isOpen: boolean): Generator<RuleBreach> {
  if (!/^[\x21-\x7e]+$/.test(token)) {
    yield {
      path,
      message: 'a token consists of visible ASCII characters without blanks; a header carries nothing else',
    }
  } else if (token.length < MIN_TOKEN_CHARS) {
    const message = `the token is shorter than ${MIN_TOKEN_CHARS} characters, so it can be guessed; make one with: openssl rand -hex 32`
    yield isOpen ? { path, code: 'TOKEN_REQUIRED', message } : { path, message, severity: 'advice' }
  }
}

/** Only what surely stays on this machine; a name could resolve to anything. */
function isLoopback(host: string): boolean {
  const plain = host.toLowerCase().replace(/^\[|\]$/g, '')
  return plain === 'localhost' || plain === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(plain)
}

function* providers(file: FileConfig): Generator<RuleBreach> {
  for (const [name, provider] of Object.entries(file.providers)) {
    const path = ['providers', name]
    const type = providerTypeOf(name, provider)
    const baseUrl = provider.baseUrl ?? knownProvider(name)?.baseUrl
    if (type === undefined) {
      yield {
        path,
        message: `${name} is not a name we know, so it needs a baseUrl, and a type unless it is openai-compatible`,
      }
    } else if (type === 'openai-compatible' && baseUrl === undefined) {
      yield { path, message: 'an openai-compatible provider needs a baseUrl' }
    }
    if (provider.type !== undefined && provider.api !== undefined && provider.type !== `openai-${provider.api}`) {
      yield { path: [...path, 'api'], message: `api "${provider.api}" contradicts type "${provider.type}"` }
    }
  }
}

function* models(file: FileConfig, ownProviders: readonly string[]): Generator<RuleBreach> {
  for (const [index, model] of modelsOf(file).entries()) {
    if (model === 'demo') continue
    const path = typeof file.model === 'string' ? ['model'] : ['model', index]
    const name = providerOf(model)
    const known = knownProvider(name)
    const provider = Object.hasOwn(file.providers, name) ? file.providers[name] : undefined
    const hint = known?.keyVariable === undefined ? '' : `, or set ${known.keyVariable}`
    if (provider === undefined) {
      // A plugin may bring it; a provider that none brings is refused when the models are resolved.
      if (file.plugins.length > 0 || ownProviders.includes(name)) continue
      yield { path, message: `${model} needs an entry providers.${name}${hint}` }
    } else if (provider.apiKey === undefined && provider.baseUrl === undefined && known?.keyless !== true) {
      // A server of one's own may well ask for no key; the providers' own addresses always do.
      yield { path, message: `${model} needs providers.${name}.apiKey${hint}` }
    }
  }
}

function* mcpServers(file: FileConfig): Generator<RuleBreach> {
  for (const [name, server] of Object.entries(file.agent.mcp.servers)) {
    if ((server.command === undefined) === (server.url === undefined)) {
      yield { path: ['agent', 'mcp', 'servers', name], message: 'an MCP server needs either command or url' }
    }
  }
}

function* tools({ agent }: FileConfig): Generator<RuleBreach> {
  const at = agent.tools.indexOf('exec')
  if (at < 0 || agent.exec.allow.length > 0) return
  yield {
    path: ['agent', 'tools', at],
    severity: 'warning',
    message: 'exec stays off until agent.exec.allow lists the programs it may run, for example ["ls"]',
  }
}

function* xiaoyi(file: FileConfig): Generator<RuleBreach> {
  const channel = file.channels.xiaoyi
  const path = ['channels', 'xiaoyi']
  if (!channel.enabled) return
  for (const key of ['ak', 'sk', 'agentId'] as const) {
    if (channel[key] === undefined) yield { path, message: `the XiaoYi channel is enabled and needs ${key}` }
  }
  if (channel.servers?.length === 0) yield { path: [...path, 'servers'], message: 'at least one server is needed' }
  const links = channel.servers?.map(({ url, tls }, index) => ({ url, tls, at: ['servers', index, 'url'] }))
  const legacy = [
    { url: channel.wsUrl1 ?? '', tls: channel.tls, at: ['wsUrl1'] },
    { url: channel.wsUrl2 ?? '', tls: channel.tls, at: ['wsUrl2'] },
  ]
  for (const { url, tls, at } of links ?? legacy) {
    if (url === '' || new URL(url).protocol !== 'ws:' || tls === 'plain' || isLoopback(new URL(url).hostname)) continue
    yield {
      path: [...path, ...at],
      message: 'ws:// would send the signature unencrypted to another machine; use wss://, or set "tls": "plain"',
    }
  }
}

function* pruning({ contextPruning: { softTrim, softTrimRatio, hardClearRatio } }: FileConfig): Generator<RuleBreach> {
  if (softTrim.headChars + softTrim.tailChars > softTrim.maxChars) {
    yield { path: ['contextPruning', 'softTrim'], message: 'headChars and tailChars together must not exceed maxChars' }
  }
  if (hardClearRatio < softTrimRatio) {
    yield { path: ['contextPruning', 'hardClearRatio'], message: 'must not be below softTrimRatio' }
  }
}
