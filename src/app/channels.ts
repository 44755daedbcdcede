import { WebhookChannel } from '../channel/webhook/channel.ts'
import type { FileLinks } from '../channel/files/file-links.ts'
import type { MessageFiles } from '../channel/files/message-files.ts'
import type { Config } from '../config/config.ts'
import type { Platform } from './platform.ts'
import { HttpChannel } from '../channel/http/channel.ts'
import { A2aChannel } from '../channel/a2a/channel.ts'
import type { AgentFacts } from '../channel/a2a/agent-card.ts'
import { Push } from '../channel/a2a/push.ts'
import type { PushConfigs } from '../channel/a2a/push-configs.ts'
import { isLoopbackHost, type Access } from '../gateway/access.ts'
import type { A2aRouteDeps } from '../gateway/a2a-routes.ts'
import { VERSION } from '../platform/own-folder.ts'
import type { SenderLimits } from '../channel/sender-rates.ts'

/** The names of the channels that every gateway has, or may have: no plugin can bring one of the same name. */
export const OWN_CHANNELS = ['webhook', 'http', 'openai', 'a2a', 'xiaoyi'] as const

/** The webhook channel of a configuration; every gateway has one, its sockets come from `serve.ts`. */
export function createWebhookChannel(
  { clock, ids, log }: Platform,
  { limits }: Config,
  { files, links }: { readonly files: MessageFiles; readonly links: FileLinks },
): WebhookChannel {
  return new WebhookChannel({
    files,
    fileUrl: (id) => links.urlOf(id),
    clock,
    ids,
    log,
    maxFrameBytes: limits.frame_bytes,
    maxConnections: limits.connections,
    maxAccounts: limits.remembered_accounts,
    limits: {
      framesPerSecond: limits.frames_per_second,
      frameBurst: limits.frames_burst,
      framesInWork: 256,
      replyBufferBytes: limits.reply_buffer_bytes,
      unconfirmed: limits.outbox_per_account,
      progressEveryMs: 50,
    },
    heartbeat: { pingMs: 30_000, deadAfterMs: 90_000 },
  })
}

/** The plain HTTP channel of a configuration; its routes come from `serve.ts`. */
export function createHttpChannel(
  { clock, ids, log, http }: Platform,
  { limits }: Config,
  { files, links }: { readonly files: MessageFiles; readonly links: FileLinks },
): HttpChannel {
  return new HttpChannel({
    clock,
    ids,
    maxBodyBytes: limits.body_bytes,
    rates: senderLimits(limits),
    replyBufferBytes: limits.reply_buffer_bytes,
    progressEveryMs: 50,
    files,
    fileUrl: (id) => links.urlOf(id),
    log,
    http,
    callbackHosts: limits.callback_hosts,
    callbackLimits: { atOnce: limits.callbacks_at_once, failures: limits.callback_failures },
  })
}

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

/** How often one sender of HTTP requests may ask, at whichever door. */
export function senderLimits({ frames_per_second, frames_burst, http_senders }: Config['limits']): SenderLimits {
  return { perSecond: frames_per_second, burst: frames_burst, senders: http_senders }
}
