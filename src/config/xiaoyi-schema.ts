import { z } from 'zod'
import { address, flag, milliseconds, oneOf, secret, section, text, whole } from './fields.ts'

/** Numbers that are not set stay absent: the channel knows its own defaults. */
const optionalMs = (description: string) => milliseconds(description).optional()
const optionalCount = (description: string) => whole(description, { min: 0 }).optional()

const tls = oneOf('How the certificate is checked; default: a host name is verified, an IP address pinned.', [
  'verify',
  'pin',
  'skip',
  'plain',
]).optional()

const servers = z
  .array(
    z.strictObject({
      url: address('Address of the service.', ['ws', 'wss']),
      tls,
      servername: text('Name to expect in the certificate.').optional(),
    }),
  )
  .optional()
  .meta({ description: 'Any number of servers, instead of wsUrl1 and wsUrl2.' })

/** `historyLimits` are the keys every channel has. */
export function xiaoyiSection<Shape extends z.ZodRawShape>(historyLimits: Shape) {
  return section('Huawei XiaoYi phones.', {
    ...historyLimits,
    enabled: flag('Whether the channel is used.', false),
    ak: secret('Access key.').optional(),
    sk: secret('Secret key; signs every connection.').optional(),
    agentId: text('The agent’s id at Huawei.').optional(),
    wsUrl1: address(
      'First server. Huawei’s own two (wss://hag.cloud.huawei.com/openclaw/v1/ws/link and wss://116.63.174.231/openclaw/v1/ws/link) are dialled only when neither wsUrl1, wsUrl2 nor servers is set.',
      ['ws', 'wss'],
    ).optional(),
    wsUrl2: z
      .union([z.literal(''), address('', ['ws', 'wss'])])
      .optional()
      .meta({
        description: 'Second server; an empty text is none.',
        title: 'an address beginning with ws:// or wss://, or an empty text',
      }),
    tls,
    servers,
    links: oneOf('Both servers at once, the second when the first is down, or the first only.', [
      'dual',
      'failover',
      'primary-only',
    ]).optional(),
    streamMode: oneOf('How an answer grows on the phone.', ['delta', 'replace', 'final-only']).optional(),
    reasoning: z.boolean().optional().meta({ description: 'Whether the model’s reasoning is shown.' }),
    keepAliveText: text('Shown while nothing else is; stays on the phone for good.').optional(),
    language: oneOf('Language of Clew’s own sentences.', ['zh', 'en']).optional(),
    taskLimitMs: optionalMs('A task older than this is closed; its result goes out by push.'),
    heartbeatMs: optionalMs('Application heartbeat.'),
    pingMs: optionalMs('WebSocket ping.'),
    deadAfterMs: optionalMs('A link without any sign of life for so long is dead.'),
    confirmMs: optionalMs('Time the peer has to show life after a final frame.'),
    dialTimeoutMs: optionalMs('Longest wait for a connection.'),
    keepAliveMs: optionalMs('A task quiet for so long sends a sign of work.'),
    pieceMs: optionalMs('Least time between two pieces of one answer.'),
    rerouteAfterMs: optionalMs('How long a link may be down before its tasks move to another.'),
    failbackAfterMs: optionalMs('The first link must be stable for so long before the second closes.'),
    backoff: z
      .strictObject({
        firstMs: optionalMs('First pause; it doubles.'),
        maxMs: optionalMs('Longest pause.'),
        attempts: optionalCount('Tries before the slow pace.'),
        slowMs: optionalMs('The slow pace; also after a refusal.'),
        stableMs: optionalMs('A connection this old starts the pauses over.'),
      })
      .optional()
      .meta({ description: 'Pauses between tries to connect.' }),
    media: z
      .strictObject({
        maxBytes: optionalCount('Bytes of one file.'),
        timeoutMs: optionalMs('Longest download.'),
        allowHosts: z.array(z.string().min(1)).optional().meta({
          description:
            'Hosts files may come from (a "*." prefix covers subdomains); all public ones when none is named. A host that is not public (127.0.0.1, nas.local) is allowed only by its exact name.',
        }),
        maxFiles: optionalCount('Files of one message.'),
        maxTextBytes: optionalCount('Bytes of a text file given to the model.'),
        maxDataChars: optionalCount('Characters of the data beside a text that are given to the model.'),
      })
      .optional()
      .meta({ description: 'Files in messages.' }),
    push: z
      .strictObject({
        url: address('Where results are pushed to.', ['https', 'http']),
        apiId: text('Id of the push interface.').optional(),
        ak: secret('Its access key, when it differs.').optional(),
        sk: secret('Its secret key, when it differs.').optional(),
        timeoutMs: optionalMs('Longest push.'),
        maxChars: optionalCount('Characters of a pushed text.'),
      })
      .optional()
      .meta({ description: 'Results after a task was closed.' }),
    limits: z
      .strictObject({
        maxFrameBytes: optionalCount('Bytes of one frame.'),
        maxParts: optionalCount('Parts of one message.'),
        maxArrivals: optionalCount('Messages being downloaded or stored at once.'),
        maxHeldFrames: optionalCount('Frames held for a link that is down.'),
        heldFrameTtlMs: optionalMs('How long they are held.'),
        maxBufferedBytes: optionalCount('Unsent bytes above which previews wait.'),
        maxPreviewChars: optionalCount('Characters of an answer shown as a preview.'),
        maxRemembered: optionalCount('Messages and requests remembered.'),
        rememberMs: optionalMs('How long they are remembered.'),
      })
      .optional()
      .meta({ description: 'Upper bounds of this channel.' }),
  })
}
