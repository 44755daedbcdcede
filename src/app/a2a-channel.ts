import { A2aChannel } from '../channel/a2a/channel.ts'
import type { AgentFacts } from '../channel/a2a/agent-card.ts'
import { Push } from '../channel/a2a/push.ts'
import type { PushConfigs } from '../channel/a2a/push-configs.ts'
import type { FileLinks } from '../channel/files/file-links.ts'
import type { MessageFiles } from '../channel/files/message-files.ts'
import type { Config } from '../config/config.ts'
import { isLoopbackHost, type Access } from '../gateway/access.ts'
import type { A2aRouteDeps } from '../gateway/a2a-routes.ts'
import type { Platform } from './platform.ts'
import { senderLimits } from './sender-limits.ts'
import { VERSION } from '../platform/own-folder.ts'

/** The A2A channel of a configuration; its routes come from `serve.ts`. */
export function createA2aChannel(
  { clock, ids, log, http }: Platform,
  { limits, a2a }: Config,
  { files, links, configs }: { readonly files: MessageFiles; readonly links: FileLinks; readonly configs: PushConfigs },
): A2aChannel {
  return new A2aChannel({
    clock,
    rates: senderLimits(limits),
    progressEveryMs: 50,
    files,
    fileUrl: (id) => `${(a2a.public_url ?? '').replace(/\/$/u, '')}${links.urlOf(id)}`,
    push: new Push({
      http,
      clock,
      ids,
      log,
      privateHosts: limits.callback_hosts,
      limits: { atOnce: limits.callbacks_at_once, failures: limits.callback_failures },
      configs,
    }),
  })
}

export function isA2aOpen({ a2a, listen }: Config): boolean {
  return a2a.enabled ?? isLoopbackHost(listen.host)
}

export function a2aRouteDeps(
  { clock, ids, log }: Platform,
  { a2a, limits, listen }: Config,
  { channel, access }: { readonly channel: A2aChannel; readonly access: Access },
): A2aRouteDeps {
  const { name, description, skills, extended_skills, public_url: publicUrl } = a2a
  const needsToken = listen.token !== undefined || Object.keys(listen.tokens).length > 0
  const facts: AgentFacts = { name, description, version: VERSION, skills, needsToken }
  return {
    channel,
    access,
    clock,
    ids,
    log,
    privateHosts: limits.callback_hosts,
    limits: { parts: limits.message_parts, configs: limits.push_configs },
    facts,
    extendedFacts: { ...facts, skills: [...skills, ...extended_skills] },
    ...(publicUrl === undefined ? {} : { publicUrl: publicUrl.replace(/\/$/u, '') }),
  }
}
