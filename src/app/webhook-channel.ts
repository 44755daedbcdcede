import { WebhookChannel } from '../channel/webhook/channel.ts'
import type { FileLinks } from '../channel/files/file-links.ts'
import type { MessageFiles } from '../channel/files/message-files.ts'
import type { Config } from '../config/config.ts'
import type { Platform } from './platform.ts'

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
