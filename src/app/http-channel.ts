import { HttpChannel } from '../channel/http/channel.ts'
import type { FileLinks } from '../channel/files/file-links.ts'
import type { MessageFiles } from '../channel/files/message-files.ts'
import type { Config } from '../config/config.ts'
import type { Platform } from './platform.ts'
import { senderLimits } from './sender-limits.ts'

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
