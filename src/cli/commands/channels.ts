import { homePaths } from '../../app/home.ts'
import { probeXiaoyi } from '../../app/xiaoyi-channel.ts'
import { isRecord, type JsonObject } from '../../base/json.ts'
import { loadConfig } from '../../config/load.ts'
import { GatewayError } from '../../core/errors.ts'
import { nodeFiles } from '../../platform/node-files.ts'
import { apiOf, findGateway, requireContact, type CommonOptions } from '../connect.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { printJson, printLines } from '../output.ts'

/** Accepts the certificate a channel refused because it had changed. */
export async function trustChannel(name: string, options: CommonOptions): Promise<void> {
  const result = await apiOf(await requireContact(options)).post(`/api/channels/${encodeURIComponent(name)}/trust`)
  if (options.json === true) return printJson(result)
  const accepted = Number(result['accepted'] ?? 0)
  printLines([
    accepted === 0
      ? 'no certificate was waiting to be accepted'
      : `${accepted} ${accepted === 1 ? 'certificate is' : 'certificates are'} trusted now`,
  ])
}

/** What `--json` shows of each server. */
type LinkVerdict = {
  readonly url: string
  readonly ok: boolean
  readonly message: string
  readonly fingerprint?: string
}

/**
 * Whether the channel's servers take us. While the gateway runs its own links are looked at: the service allows one
 * connection per agent, and a second one would throw the first out.
 */
export async function testChannel(name: string, options: CommonOptions): Promise<void> {
  if (name !== 'xiaoyi') throw new GatewayError('FIELD_INVALID', 'only xiaoyi can be tested', { field: 'name' })
  const running = await findGateway(options)
  const links = running === undefined ? await probe(options) : linksOf(await apiOf(running).get('/api/status'))
  const isOk = links.length > 0 && links.every(({ ok }) => ok)
  if (!isOk) process.exitCode = EXIT_FAILURE
  if (options.json === true) return printJson({ channel: name, ok: isOk, running: running !== undefined, links })
  if (links.length === 0) return printLines(['the running gateway has no XiaoYi channel; see channels.xiaoyi.enabled'])
  printLines(links.map(({ url, ok, message }) => `${ok ? 'ok     ' : 'failed '} ${url}: ${message}`))
}

async function probe(options: CommonOptions): Promise<readonly LinkVerdict[]> {
  const { config: path } = homePaths(options.home, process.env)
  const { config } = await loadConfig({ files: nodeFiles, path, env: process.env })
  return (await probeXiaoyi(config)).map((result) => ({ ...result }))
}

function linksOf(status: JsonObject): readonly LinkVerdict[] {
  const channels = isRecord(status['channels']) ? status['channels'] : {}
  const xiaoyi = isRecord(channels['xiaoyi']) ? channels['xiaoyi'] : {}
  const links = Array.isArray(xiaoyi['links']) ? xiaoyi['links'].filter(isRecord) : []
  return links.map(({ url, state, lastError, nextTryInSeconds }) => {
    const next = typeof nextTryInSeconds === 'number' ? `; next try in ${nextTryInSeconds} s` : ''
    const reason = typeof lastError === 'string' ? ` (${lastError})` : ''
    return {
      url: String(url),
      ok: state === 'open' || state === 'stopped',
      message: `${String(state)}${reason}${next}`,
    }
  })
}
