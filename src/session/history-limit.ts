import type { SessionKey } from '../core/ids.ts'

export interface ChannelHistoryLimits {
  readonly historyLimit?: number
  readonly dmHistoryLimit?: number
  readonly dms?: Readonly<Record<string, { readonly historyLimit?: number }>>
}

/**
 * How many user turns of this conversation the model sees; 0 for all. Keys look like
 * `agent:{agent}:{channel}:{kind}:{peer}[:topic:…|:thread:…]`, ids percent-encoded; other keys have no limit.
 */
export function historyLimitOf(
  key: SessionKey,
  channels: Readonly<Record<string, ChannelHistoryLimits | undefined>>,
): number {
  const [prefix, , channel, kind, peer] = key.split(':')
  if (prefix !== 'agent' || channel === undefined || peer === undefined) return 0
  const limits = channels[channel]
  if (limits === undefined) return 0
  if (kind === 'group' || kind === 'channel') return limits.historyLimit ?? 0
  if (kind !== 'dm' && kind !== 'direct') return 0
  return limitOfPeer(decodeId(peer), limits) ?? limits.dmHistoryLimit ?? 0
}

/** Exactly as configured first; keys are folded, so a peer that differs by case only is meant too. */
function limitOfPeer(peer: string, { dms }: ChannelHistoryLimits): number | undefined {
  if (dms === undefined) return undefined
  const exact = Object.hasOwn(dms, peer) ? dms[peer] : undefined
  const folded = Object.entries(dms).find(([name]) => name.toLowerCase() === peer.toLowerCase())?.[1]
  return (exact ?? folded)?.historyLimit
}

function decodeId(id: string): string {
  return id.replaceAll(/%3a/giu, ':').replaceAll('%25', '%')
}
