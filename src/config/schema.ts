import { z } from 'zod'
import { CLEANUP_STRATEGIES } from '../core/cleanup-strategy.ts'
import { LANGUAGE_SETTINGS } from '../core/language.ts'
import { PROVIDER_TYPES } from '../core/known-providers.ts'
import { a2aSection } from './a2a-schema.ts'
import { DEFAULTS } from './defaults.ts'
import { address, count, duration, flag, milliseconds, oneOf, secret, section, share, text, whole } from './fields.ts'
import { xiaoyiSection } from './xiaoyi-schema.ts'

const accessToken = z.strictObject({
  token: secret('The token, usually "$NAME" of an environment variable.'),
  sessions: oneOf('Whether it sees only the conversations it began, or all; default: "own", for an admin "all".', [
    'own',
    'all',
  ]).optional(),
  admin: flag('Whether it may see and steer the gateway itself: status, channels, providers.', false),
})

const listen = section('Where the gateway itself listens: dashboard, /ws, /healthz, /metrics and /api on one port.', {
  host: text('Address to bind. Anything but loopback needs a token.').default(DEFAULTS.listen.host),
  port: whole('Port; 0 picks a free one.', { min: 0, max: 65_535 }).default(DEFAULTS.listen.port),
  token: secret('Everybody must show it, on loopback too; it may do everything. Usually "$CLEW_TOKEN".').optional(),
  tokens: z
    .record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/), accessToken)
    .default({})
    .meta({ description: 'One token per client, by the name its conversations belong to.' }),
  allowed_origins: z
    .array(address('An origin.', ['http', 'https']))
    .default([])
    .meta({ description: 'Web pages of these origins may connect besides Clew’s own.' }),
})

const modelFacts = z.strictObject({
  contextWindow: whole('Tokens the model can see at once.', { min: 1_000 }).optional(),
  maxOutputTokens: whole('Tokens of one answer.', { min: 1 }).optional(),
  images: z.boolean().optional().meta({ description: 'Whether it accepts images.' }),
  reasoning: z.boolean().optional().meta({ description: 'Whether it can think before it answers.' }),
  price: z
    .strictObject({
      input: z.number().min(0).optional(),
      output: z.number().min(0).optional(),
      cacheRead: z.number().min(0).optional(),
      cacheWrite: z.number().min(0).optional(),
    })
    .optional()
    .meta({ description: 'US dollars per million tokens.' }),
})

const provider = z.strictObject({
  type: oneOf(
    'The API it speaks; known names (anthropic, openai, google, mistral, deepseek, ollama …) need none.',
    PROVIDER_TYPES,
  ).optional(),
  baseUrl: address('Where the API is, with or without its version path.', ['http', 'https']).optional(),
  apiKey: secret('The key, usually "$NAME" of an environment variable.').optional(),
  api: oneOf('Which of OpenAI’s two APIs.', ['responses', 'completions']).optional(),
  headers: z.record(z.string(), secret('A header value.')).optional().meta({ description: 'Sent with every request.' }),
  models: z
    .record(z.string(), modelFacts)
    .default({})
    .meta({ description: 'What the catalogue does not know, or has wrong, per model id.' }),
  connectTimeoutMs: milliseconds('Longest wait for a connection.').default(DEFAULTS.provider.connectTimeoutMs),
  firstByteTimeoutMs: milliseconds('Longest wait for an answer to begin.').default(
    DEFAULTS.provider.firstByteTimeoutMs,
  ),
  idleTimeoutMs: milliseconds('Longest silence inside an answer.').default(DEFAULTS.provider.idleTimeoutMs),
  maxRetries: whole('Tries after a failure that may pass.', { min: 0, max: 10 }).default(DEFAULTS.provider.maxRetries),
})

const mcpServer = z.strictObject({
  enabled: flag('Whether it is used.', true),
  command: text('Program to start, for a server that speaks over its standard input and output.').optional(),
  args: z.array(z.string()).default([]).meta({ description: 'Its arguments.' }),
  env: z
    .record(z.string(), secret('A value.'))
    .default({})
    .meta({ description: 'Environment variables it gets besides a minimal set.' }),
  cwd: text('Its working directory; default: the workspace.').optional(),
  url: address('Address, for a server that speaks over HTTP.', ['http', 'https']).optional(),
  headers: z
    .record(z.string(), secret('A header value.'))
    .default({})
    .meta({ description: 'Sent with every request.' }),
  tools: z.array(z.string()).optional().meta({ description: 'Only these of its tools; default: all.' }),
  timeout_ms: milliseconds('Longest run of one of its tools.').optional(),
})

const agent = section('What answers.', {
  system_prompt: z.string().default(DEFAULTS.agent.system_prompt).meta({ description: 'Instructions for the model.' }),
  tools: z
    .array(z.string().min(1))
    .default([...DEFAULTS.agent.tools])
    .meta({ description: 'Built-in tools the model may call.' }),
  thinking: oneOf('How much the model thinks before it answers, where it can.', [
    'off',
    'minimal',
    'low',
    'medium',
    'high',
    'xhigh',
  ]).default(DEFAULTS.agent.thinking),
  max_output_tokens: whole('Tokens of one answer; default: the model’s own limit.', { min: 1 }).optional(),
  tool_timeout_ms: milliseconds('Longest run of one tool call.').default(DEFAULTS.agent.tool_timeout_ms),
  parallel_tools: count('Tool calls of one answer that run at the same time.', DEFAULTS.agent.parallel_tools),
  tool_output_chars: count(
    'Characters of one tool result that the model sees. The whole of it is kept; read_result shows the rest.',
    DEFAULTS.agent.tool_output_chars,
    1_000,
  ),
  approve: z.array(z.string().min(1)).default([]).meta({
    description:
      'Tools whose every call the user has to allow: names, or patterns with "*" such as "mcp:*:write*". Recommended for exec.',
  }),
  approve_timeout_ms: milliseconds('How long a call waits to be allowed; then it counts as denied.').default(
    DEFAULTS.agent.approve_timeout_ms,
  ),
  exec: section('The exec tool runs programs. It exists only when something is allowed.', {
    allow: z.array(z.string().min(1)).default([]).meta({ description: 'Programs that may be run, by name or path.' }),
  }),
  fetch: section('The fetch tool.', {
    allow_hosts: z
      .array(z.string().min(1))
      .default([])
      .meta({ description: 'Only these hosts (a "*." prefix covers subdomains); every public one when empty.' }),
  }),
  mcp: section('Tools from MCP servers.', {
    servers: z.record(z.string(), mcpServer).default({}).meta({ description: 'Servers by name.' }),
  }),
})

const historyLimit = (description: string) => count(`${description} 0 is unlimited.`, DEFAULTS.history_limit, 0)

/** The same three keys for every channel. */
const historyLimits = {
  historyLimit: historyLimit('User turns of a group or channel conversation the model sees.'),
  dmHistoryLimit: historyLimit('User turns of a direct conversation the model sees.'),
  dms: z
    .record(z.string(), z.strictObject({ historyLimit: whole('User turns the model sees.', { min: 0 }).optional() }))
    .default({})
    .meta({ description: 'Exceptions for single peers.' }),
}

const webhook = section('The WebSocket channel.', {
  ...historyLimits,
  backoff: section('Pauses between tries to reach the hub in webhook_url.', {
    first_ms: milliseconds('The first pause; it doubles.').default(DEFAULTS.webhook_backoff.first_ms),
    max_ms: milliseconds('The longest pause.').default(DEFAULTS.webhook_backoff.max_ms),
    stable_ms: milliseconds('A connection this old starts over at the first pause.').default(
      DEFAULTS.webhook_backoff.stable_ms,
    ),
  }),
})

const compaction = section('Summarising old turns when the history outgrows its share of the model’s window.', {
  mode: oneOf('"off" leaves it to truncation.', ['safeguard', 'off']).default(DEFAULTS.compaction.mode),
  maxHistoryShare: share('Part of the window the history may take.', DEFAULTS.compaction.maxHistoryShare),
  reserveTokens: count(
    'Tokens of the window kept free for the answer, at most a quarter of it: what is left may be history, up to its share.',
    DEFAULTS.compaction.reserveTokens,
    0,
  ),
  keepRecentTokens: count('Tokens of recent turns that stay verbatim.', DEFAULTS.compaction.keepRecentTokens, 0),
})

const pruned = DEFAULTS.contextPruning
const contextPruning = section('Trimming old tool results once the provider’s prompt cache is cold anyway.', {
  mode: oneOf('"off" sends them whole.', ['cache-ttl', 'off']).default(pruned.mode),
  ttl: duration('How long the provider’s cache stays warm.').prefault(pruned.ttl),
  keepLastAssistants: count('Latest assistant turns that are never touched.', pruned.keepLastAssistants, 0),
  softTrimRatio: share('Filling of the window above which results are trimmed.', pruned.softTrimRatio),
  hardClearRatio: share('Filling of the window above which results are cleared.', pruned.hardClearRatio),
  minPrunableToolChars: count('Less than this is not worth clearing.', pruned.minPrunableToolChars, 0),
  softTrim: section('What a trimmed result keeps.', {
    maxChars: count('Results up to this length stay whole.', pruned.softTrim.maxChars, 0),
    headChars: count('Kept of the beginning.', pruned.softTrim.headChars, 0),
    tailChars: count('Kept of the end.', pruned.softTrim.tailChars, 0),
  }),
  hardClear: section('What stands in place of a cleared result.', {
    enabled: flag('Whether results are cleared at all.', pruned.hardClear.enabled),
    placeholder: text('The text.').default(pruned.hardClear.placeholder),
  }),
  tools: section('Which tools’ results may be pruned ("*" matches any part of a name; deny wins).', {
    allow: z.array(z.string()).default([]).meta({ description: 'Empty is all.' }),
    deny: z.array(z.string()).default([]).meta({ description: 'Never these.' }),
  }),
})

const l = DEFAULTS.limits
const limits = section('Upper bounds. Reaching one is answered with an error code, never with silence.', {
  frame_bytes: count('Bytes of one WebSocket frame.', l.frame_bytes, 1_024),
  frames_per_second: count('Frames per second and connection.', l.frames_per_second),
  frames_burst: count('Frames at once and connection.', l.frames_burst),
  connections: count('Open WebSocket connections.', l.connections),
  queued_per_session: count('Messages of one session waiting for their turn.', l.queued_per_session),
  queued_total: count('Messages waiting in all sessions.', l.queued_total),
  message_attempts: count(
    'Starts of the gateway that may end unforeseen in one message before it is answered with an error; 0: any number.',
    l.message_attempts,
    0,
  ),
  concurrent_turns: count('Turns running at the same time.', l.concurrent_turns),
  concurrent_turns_per_provider: whole(
    'Of these, turns that one provider is to answer: one that hangs holds no more. Three quarters of `concurrent_turns` when not set.',
    { min: 1 },
  ).optional(),
  concurrent_turns_per_account: whole(
    'Of these, turns of one account. Three quarters of `concurrent_turns` when not set; of those waiting, the account with the fewest running turns is next.',
    { min: 1 },
  ).optional(),
  reply_buffer_bytes: count(
    'Bytes waiting for a slow reader before its connection is closed.',
    l.reply_buffer_bytes,
    1_024,
  ),
  body_bytes: count('Bytes of one HTTP request body.', l.body_bytes, 1_024),
  file_bytes: count('Bytes of one file that a client sends.', l.file_bytes, 1_024),
  files_per_message: count('Files of one message.', l.files_per_message),
  file_text_bytes: count('Bytes of a text file that the model is given.', l.file_text_bytes, 1_024),
  file_link_ms: milliseconds('How long the address of a file in an answer works.').default(l.file_link_ms),
  callback_hosts: z
    .array(z.string())
    .default([])
    .meta({ description: 'Hosts of this machine or network that callbacks may go to: names or addresses, no port.' }),
  redelivery_ms: milliseconds('How long after its answer a message is recognised when it comes again.').default(
    l.redelivery_ms,
  ),
  outbox_per_account: count('Undelivered replies kept for one client; the oldest go first.', l.outbox_per_account),
  warm_session_bytes: count('Memory for recently used sessions.', l.warm_session_bytes, 0),
  bodies_bytes: count('Bytes of all HTTP request bodies being worked on.', l.bodies_bytes, 1_024),
  unfinished_bytes: count('Bytes of all WebSocket frames that have not arrived whole.', l.unfinished_bytes, 1_024),
  sessions: count('Conversations in the index; beyond it messages that would begin one are refused.', l.sessions),
  remembered_messages: count(
    'Messages remembered to recognise one that comes again, by its content or its idempotency key; the oldest answered ones are forgotten first.',
    l.remembered_messages,
  ),
  remembered_bytes: count('Memory for them and their answers.', l.remembered_bytes, 1_024),
  remembered_accounts: count(
    'Clients whose frame numbers are known one by one; one that was forgotten counts on from the highest number.',
    l.remembered_accounts,
  ),
  remembered_windows: count(
    'Models of which a refusal taught something: their window, or the form of requests they take.',
    l.remembered_windows,
  ),
  archived_per_session: count(
    'Earlier conversations of one key that are listed; older ones keep their file.',
    l.archived_per_session,
  ),
  usage_sessions: count('Conversations whose cost and savings are known in total.', l.usage_sessions),
  usage_hours: count('Rows of the hourly cost report, by model and channel, and as many by session.', l.usage_hours),
  usage_days: count('Days of the daily cost report.', l.usage_days),
  list: count('Rows of one list of sessions; more come with its cursor.', l.list),
  http_connections: count(
    'Open connections of any kind; further ones are closed without an answer.',
    l.http_connections,
  ),
  http_senders: count(
    'Senders of HTTP requests (accounts, else addresses) whose rate is known one by one.',
    l.http_senders,
  ),
  wrong_tokens: count(
    'Wrong tokens of one address that are answered at once; after them one every three seconds.',
    l.wrong_tokens,
  ),
  wrong_token_addresses: count('Addresses whose wrong tokens are counted.', l.wrong_token_addresses),
  callbacks_at_once: count('Callbacks and push notifications being sent at the same time.', l.callbacks_at_once),
  callback_failures: count('Callbacks whose last failure can be looked up.', l.callback_failures),
  push_tasks: count('A2A tasks whose push notifications were changed after they began.', l.push_tasks),
  push_configs: count('Addresses for push notifications of one A2A task.', l.push_configs),
  message_parts: count('Parts of one A2A message.', l.message_parts),
  openai_messages: count('Messages of one request to the OpenAI-compatible API.', l.openai_messages),
  openai_tools: count('Tools of one request to the OpenAI-compatible API.', l.openai_tools),
  chosen_models: count('Conversations for which a model was chosen before they began.', l.chosen_models),
  live_streams: count('Open event streams of the dashboard.', l.live_streams),
})

const retention = section(
  'Conversations that are not used any more. Their transcripts are kept whatever is set here.',
  {
    archive_after_days: whole(
      'Days after which a conversation that was not used leaves the list and the memory. A message to it, or its name in a command, brings it back. Never when not set.',
      { min: 1, max: 36_500 },
    ).optional(),
    archived_per_hour: count('Conversations archived in one hour at most.', DEFAULTS.retention.archived_per_hour),
  },
)

const budget = section('Spending limits, checked before each request to a model. Not set is unlimited.', {
  session_tokens: whole('Tokens one session may use in total.', { min: 1 }).optional(),
  session_usd: z.number().min(0).optional().meta({ description: 'US dollars one session may cost in total.' }),
  daily_tokens: whole('Tokens of all sessions in one day (UTC).', { min: 1 }).optional(),
  daily_usd: z.number().min(0).optional().meta({ description: 'US dollars of all sessions in one day (UTC).' }),
})

const storage = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('files') }),
    z.strictObject({
      kind: z.literal('postgres'),
      url: secret('Connection address, usually "$DATABASE_URL".'),
      schema: z
        .string()
        .regex(/^(?!pg_)[a-z_][a-z0-9_]{0,62}$/)
        .meta({ title: 'a name of small letters, digits and _ that does not begin with a digit or pg_' })
        .default(DEFAULTS.storage.schema)
        .meta({ description: 'Where the tables are: small letters, digits and _. Created when it is not there.' }),
      lease_ms: whole('How long a silent node keeps its sessions before others take them over.', {
        min: 1_000,
        max: 600_000,
      }).default(DEFAULTS.storage.lease_ms),
      poll_ms: whole('How often a node looks for what a lost notification of the database was about.', {
        min: 100,
        max: 600_000,
      }).default(DEFAULTS.storage.poll_ms),
      pool: whole('Connections to the database at most, besides the one that listens.', { min: 2, max: 100 }).default(
        DEFAULTS.storage.pool,
      ),
    }),
  ])
  .prefault({ kind: 'files' })
  .meta({
    description: 'Where conversations are kept: files in the home directory, or one database for several nodes.',
  })

const modelName = z
  .string()
  .regex(/^(demo|[^/\s]+\/\S+)$/)
  .meta({ title: '"demo" or "<provider>/<model id>"' })

export const fileSchema = z
  .strictObject({
    $schema: z.string().optional().meta({ description: 'For editors: where this schema is.' }),
    webhook_url: address('A hub to dial. Clew’s own listen address means: serve it. Nothing is dialled without it.', [
      'ws',
      'wss',
    ]).optional(),
    uid: text('Clew’s identity at the hub; default: made once and stored in <home>/uid.').optional(),
    agent_id: text('Name of the agent in session keys.').default(DEFAULTS.agent_id),
    session_scope: oneOf('Which messages without an explicit session belong together.', [
      'per-sender',
      'global',
      'per-connection',
    ]).default(DEFAULTS.session_scope),
    preserve_case: flag('Whether ids that differ by case only are different.', DEFAULTS.preserve_case),
    listen,
    model: z
      .union([modelName, z.array(modelName).min(1)])
      .default(DEFAULTS.model)
      .meta({
        description:
          'What answers: "demo", "<provider>/<model id>", or a list: if a model fails before any output is visible, the next one is used.',
        title: '"demo", "<provider>/<model id>", or a list of such names',
      }),
    providers: z
      .record(z.string().regex(/^[^/\s]+$/), provider)
      .default({})
      .meta({ description: 'Model providers by name.' }),
    language: oneOf(
      'Of command answers, the cleanup display and the command line. "auto" follows the user’s message, then the locale.',
      [...LANGUAGE_SETTINGS],
    ).default(DEFAULTS.language),
    agent,
    task: section('How one instruction is worked to its end.', {
      auto_cleanup_enabled: flag(
        'Whether a finished step’s intermediate rounds leave the model’s view.',
        DEFAULTS.task.auto_cleanup_enabled,
      ),
      max_rounds: count('Model answers for one instruction.', DEFAULTS.task.max_rounds),
      cleanup_min_tokens: count('Smaller gains are not cleaned up.', DEFAULTS.task.cleanup_min_tokens, 0),
      cleanup_policy: oneOf(
        '"cache-aware" compares in money: while a cleanup would cost more in broken prompt caches than it saves, it waits, and then cleans several steps at once.',
        ['always', 'cache-aware'],
      ).default(DEFAULTS.task.cleanup_policy),
      cleanup_strategy: oneOf(
        'What of a finished step is hidden: everything between instruction and answer, only rounds in which every call failed, nothing, or everything with a summary by the model in its place.',
        [...CLEANUP_STRATEGIES],
      ).default(DEFAULTS.task.cleanup_strategy),
      cleanup_keep_tools: z
        .array(z.string().min(1))
        .default([])
        .meta({ description: 'Rounds that called one of these tools are never hidden.' }),
      cleanup_keep_rounds: count(
        'Rounds before the answer that are never hidden.',
        DEFAULTS.task.cleanup_keep_rounds,
        0,
      ),
    }),
    queue: section('What a new message does while its session’s turn runs.', {
      mode: oneOf('Wait, join the running turn at its next round, or end it.', ['queue', 'steer', 'interrupt']).default(
        DEFAULTS.queue.mode,
      ),
    }),
    a2a: a2aSection(DEFAULTS.a2a),
    channels: section('Ways in.', { webhook, xiaoyi: xiaoyiSection(historyLimits) }),
    compaction,
    contextPruning,
    limits,
    retention,
    budget,
    media: section('Files that came in through a channel. What a message or transcript refers to is never removed.', {
      max_age_ms: milliseconds('Older files are removed.').default(DEFAULTS.media.max_age_ms),
      max_bytes: count('All files together; the oldest are removed first.', DEFAULTS.media.max_bytes, 0),
    }),
    shutdown: section('Ending.', {
      drain_ms: milliseconds('Time running turns get to finish.').default(DEFAULTS.shutdown.drain_ms),
    }),
    plugins: z
      .array(z.string().min(1))
      .default([])
      .meta({ description: 'Plugin files to load, relative to the file: tools, channels, providers and hooks.' }),
    hooks: z.array(z.string().min(1)).default([]).meta({ description: 'Modules to load, relative to the file.' }),
    storage,
    durability: oneOf('"sync": acknowledged is on disk. "fast": acknowledged is with the operating system.', [
      'sync',
      'fast',
    ]).default(DEFAULTS.durability),
  })
  .meta({
    title: 'Clew bridge.json',
    description: 'Every key is optional. Text of the form "$NAME" is read from the environment.',
  })

export type FileConfig = z.output<typeof fileSchema>
