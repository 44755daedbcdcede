/** `channels.<name>` of the configuration, as far as limits go. */
export interface ChannelLimits {
  readonly historyLimit?: number
  readonly dmHistoryLimit?: number
  readonly dms?: { readonly [peer: string]: { readonly historyLimit?: number } | undefined }
}

const DM_KINDS = ['dm', 'direct']
const GROUP_KINDS = ['group', 'channel']

/**
 * The original's `getHistoryLimitFromSessionKey`, for every form of key: `webhook:dm:ann`, `agent:main:webhook:dm:ann`,
 * with an account before the kind, with a peer that is encoded, with a thread or topic behind it, and without a channel
 * (then every channel that knows the peer, or has a limit, is asked in order). 0, which means no limit, for everything else.
 */
export function historyLimitOf(key: string, channels: { readonly [name: string]: ChannelLimits | undefined }): number {
  const address = addressOf(key)
  if (address === undefined) return 0
  const candidates = address.channel === undefined ? Object.values(channels) : [findNamed(channels, address.channel)]
  const limits = candidates.map((channel) => limitIn(channel, address))
  return limits.find((limit) => limit !== undefined) ?? 0
}

interface Address {
  readonly channel: string | undefined
  readonly kind: 'dm' | 'group'
  readonly peer: string
}

function addressOf(key: string): Address | undefined {
  const parts = key.split(':').filter((part) => part !== '')
  const rest = parts[0]?.toLowerCase() === 'agent' && parts.length >= 3 ? parts.slice(2) : parts
  // The kind stands first, behind the channel, or behind channel and account.
  const at = rest.slice(0, 3).findIndex((part) => kindOf(part) !== undefined)
  const kind = kindOf(rest[at])
  if (kind === undefined) return undefined
  return {
    channel: at === 0 ? undefined : rest[0]?.toLowerCase(),
    kind,
    peer: withoutThread(rest.slice(at + 1)).join(':'),
  }
}

function kindOf(part: string | undefined): Address['kind'] | undefined {
  const name = part?.toLowerCase() ?? ''
  if (DM_KINDS.includes(name)) return 'dm'
  return GROUP_KINDS.includes(name) ? 'group' : undefined
}

function withoutThread(peer: readonly string[]): readonly string[] {
  const mark = peer.at(-2)?.toLowerCase()
  return peer.length > 2 && (mark === 'thread' || mark === 'topic') ? peer.slice(0, -2) : peer
}

/** By its name as it is, else without its case. */
function findNamed<T>(named: { readonly [name: string]: T | undefined }, wanted: string): T | undefined {
  const folded = wanted.toLowerCase()
  return named[wanted] ?? Object.entries(named).find(([name]) => name.toLowerCase() === folded)?.[1]
}

/** As the peer calls itself: in keys that we make, what divides a key is encoded. */
function withoutEncoding(peer: string): string {
  return peer.replaceAll(/%3a/giu, ':').replaceAll('%25', '%')
}

function limitIn(channel: ChannelLimits | undefined, { kind, peer }: Address): number | undefined {
  if (channel === undefined) return undefined
  if (kind === 'group') return channel.historyLimit
  const { dms = {} } = channel
  const own = findNamed(dms, peer) ?? findNamed(dms, withoutEncoding(peer))
  // Zero is a limit of its own: none.
  return own?.historyLimit ?? channel.dmHistoryLimit
}
