import { contactUrl } from '../../app/contact.ts'
import { visibleText } from '../../base/text.ts'
import { ClewClient, ClewError } from '../../client/index.ts'
import { GatewayError, isErrorCode } from '../../core/errors.ts'
import { nodeFiles } from '../../platform/node-files.ts'
import { WebSocket } from '../../platform/web.ts'
import { sendFile, type SentFile } from '../chat/attachments.ts'
import { apiOf, requireContact, type CommonOptions } from '../connect.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { printJson } from '../output.ts'

export interface SendOptions extends CommonOptions {
  readonly session?: string
  readonly stream?: boolean
  readonly file?: readonly string[]
}

/** One message, one answer: for scripts. A failed turn leaves standard output empty and ends with 1. */
export async function send(text: string, options: SendOptions): Promise<void> {
  if (text.trim() === '') throw new GatewayError('FIELD_INVALID', 'there is nothing to send', { field: 'text' })
  const running = await requireContact(options)
  const { contact } = running
  const client = new ClewClient({
    url: `${contactUrl(contact, 'ws')}/ws`,
    ...(contact.token === undefined ? {} : { token: contact.token }),
    WebSocket,
  })
  try {
    const files: SentFile[] = []
    for (const path of options.file ?? [])
      files.push(await sendFile(path, { files: nodeFiles, api: apiOf(running), uid: client.uid }))
    await answer(client, text, files, options)
  } catch (error) {
    if (!(error instanceof ClewError)) throw error
    const { code, message } = error
    if (isErrorCode(code)) throw new GatewayError(code, message)
    process.stderr.write(`clew: ${visibleText(message)} (${code})\n`)
    process.exitCode = EXIT_FAILURE
  } finally {
    client.close()
  }
}

async function answer(
  client: ClewClient,
  text: string,
  files: readonly SentFile[],
  { session, stream, json }: SendOptions,
): Promise<void> {
  const isStreamed = stream === true && json !== true
  let shown = ''
  const asked = client.ask(text, {
    stream: isStreamed,
    ...(session === undefined ? {} : { session }),
    ...(files.length === 0 ? {} : { files: files.map(({ id }) => ({ id })) }),
  })
  for await (const event of asked) {
    if (event.type === 'progress' && isStreamed) {
      // A later round begins a text of its own.
      const fresh = event.text.startsWith(shown) ? event.text.slice(shown.length) : `\n${event.text}`
      process.stdout.write(visibleText(fresh))
      shown = event.text
    }
    if (event.type !== 'complete') continue
    const { text: content, session: key, runId, model, usage } = event
    if (json === true)
      printJson({
        content,
        session: key,
        runId,
        model: model ?? null,
        usage: usage === undefined ? null : { ...usage },
      })
    else
      process.stdout.write(`${visibleText(content.startsWith(shown) ? content.slice(shown.length) : `\n${content}`)}\n`)
  }
}
