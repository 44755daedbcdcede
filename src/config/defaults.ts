const KIB = 1024
const MIB = 1024 * KIB

/** What holds when `bridge.json` says nothing. The only place; the schema, the docs and the published JSON Schema read it from here. */
export const DEFAULTS = {
  agent_id: 'main',
  session_scope: 'per-sender',
  preserve_case: false,
  durability: 'sync',
  model: 'demo',
  listen: { host: '127.0.0.1', port: 8080 },
  provider: {
    connectTimeoutMs: 10_000,
    // Reasoning models think for minutes before the first byte.
    firstByteTimeoutMs: 300_000,
    idleTimeoutMs: 300_000,
    maxRetries: 3,
  },
  agent: {
    system_prompt:
      'You are a helpful assistant. Answer in the language of the user. Use the tools you have when they help, and say so when something failed.',
    tools: ['time', 'calculator', 'files', 'fetch'],
    thinking: 'off',
    tool_timeout_ms: 60_000,
    parallel_tools: 4,
    tool_output_chars: 200_000,
  },
  task: {
    auto_cleanup_enabled: true,
    max_rounds: 16,
    cleanup_min_tokens: 0,
    cleanup_policy: 'always',
    cleanup_strategy: 'intermediate',
    cleanup_keep_rounds: 0,
  },
  queue: { mode: 'queue' },
  history_limit: 50,
  webhook_backoff: { first_ms: 2_000, max_ms: 60_000, stable_ms: 10_000 },
  compaction: { mode: 'safeguard', maxHistoryShare: 0.5, reserveTokens: 20_000, keepRecentTokens: 20_000 },
  contextPruning: {
    mode: 'cache-ttl',
    ttl: '5m',
    keepLastAssistants: 3,
    softTrimRatio: 0.3,
    hardClearRatio: 0.5,
    minPrunableToolChars: 50_000,
    softTrim: { maxChars: 4_000, headChars: 1_500, tailChars: 1_500 },
    hardClear: { enabled: true, placeholder: '[Old tool result content cleared]' },
  },
  limits: {
    frame_bytes: MIB,
    frames_per_second: 200,
    frames_burst: 400,
    connections: 2_000,
    queued_per_session: 100,
    queued_total: 10_000,
    concurrent_turns: 64,
    reply_buffer_bytes: MIB,
    body_bytes: MIB,
    redelivery_ms: 24 * 3_600_000,
    outbox_per_account: 1_000,
    warm_session_bytes: 64 * MIB,
    list: 10_000,
  },
  media: { max_age_ms: 7 * 24 * 60 * 60 * 1000, max_bytes: 1024 * MIB },
  shutdown: { drain_ms: 10_000 },
} as const
