import { TRANSCRIPT_POLICIES, type TranscriptPolicy } from '../../src/core/history-rules.ts'

const COLUMNS: readonly (keyof Omit<TranscriptPolicy, 'row' | 'limits'>)[] = [
  'sanitizeMode',
  'sanitizeToolCallIds',
  'repairToolUseResultPairing',
  'normalizeAntigravityThinking',
  'applyGoogleTurnOrdering',
  'validateTurns',
  'allowSyntheticToolResults',
  'toolCallIdMode',
  'replayThinking',
  'startWithUser',
  'bridgeToolResults',
  'toolCalls',
]

/** `docs/maintainers/transcript-policy.md` as it has to be; `npm run docs:policy` writes it and a test compares. */
export function policyDocs(): string {
  const rows = Object.values(TRANSCRIPT_POLICIES)
  const names = rows.map((policy) => policy.row)
  return `${[
    '# Transcript policy',
    '',
    'Generated from `src/core/history-rules.ts` by `npm run docs:policy`; do not edit.',
    '',
    'Which rules a history follows is decided by the model family first, then the API, then the provider. What is unknown',
    'gets the row `default`. The first seven lines are the columns of the original; pairing and synthetic results are on',
    'everywhere, because every provider refuses an unpaired call in practice, and so is the full clean-up',
    '([decision 0014](../decisions/0014-full-clean-up-for-every-model.md)).',
    '',
    line(['', ...names]),
    line(['---', ...names.map(() => '---')]),
    ...COLUMNS.map((column) => line([`\`${column}\``, ...rows.map((policy) => cell(policy[column]))])),
    '',
    '## Limits of a request',
    '',
    'Measured on the wire. A limit that depends on the rest of the request is its strictest value.',
    '',
    line(['', ...names]),
    line(['---', ...names.map(() => '---')]),
    line(['images', ...rows.map(({ limits }) => String(limits.maxImages))]),
    line(['base64 characters per image', ...rows.map(({ limits }) => megabytes(limits.maxImageBytes))]),
    line(['longest side', ...rows.map(({ limits }) => `${limits.maxImageSidePx} px`)]),
    line(['body', ...rows.map(({ limits }) => megabytes(limits.maxRequestBytes))]),
    line(['formats', ...rows.map(({ limits }) => limits.imageTypes.map((type) => type.slice(6)).join(' '))]),
  ].join('\n')}\n`
}

const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
const cell = (value: string | boolean): string => (typeof value === 'boolean' ? (value ? 'yes' : 'no') : value)
const megabytes = (bytes: number): string => `${bytes / 1024 / 1024} MB`
