import type { Entry } from '../../../src/core/entry.ts'
import { NO_USAGE, type AssistantBlock, type AssistantMessage, type UserBlock } from '../../../src/core/message.ts'
import { planCompactionUndo } from '../../../src/history/compaction-undo.ts'
import { id, PNG_1PX } from '../history.ts'
import type { Random } from './random.ts'

/** Models that wrote parts of the histories, each with the artefacts of its provider. */
export const WRITERS = [
  { provider: 'anthropic', api: 'anthropic-messages', model: 'claude-sonnet-4-5' },
  { provider: 'anthropic', api: 'anthropic-messages', model: 'claude-opus-4-8' },
  { provider: 'google', api: 'google-generative-ai', model: 'gemini-2.5-pro' },
  { provider: 'google', api: 'google-generative-ai', model: 'gemini-3-pro' },
  { provider: 'openai', api: 'openai-responses', model: 'gpt-5' },
  { provider: 'openai', api: 'openai-completions', model: 'gpt-4.1' },
  { provider: 'mistral', api: 'mistral-conversations', model: 'mistral-large-latest' },
  { provider: 'my-local', api: 'openai-completions', model: 'deepseek-r1' },
] as const

export type Writer = (typeof WRITERS)[number]

const TEXTS = [
  'find the bug in the parser',
  'continue',
  '继续',
  '请把会议记录整理成三点，并列出每个人的任务。',
  '日本語のテキスト 한국어 텍스트',
  'emoji 😀👍🏽👨‍👩‍👧 done',
  'tabs\tand\nlines\n\n  indented',
  'a'.repeat(300),
  '<|endoftext|> {"json": [1, 2, "x"]}',
  '[Inter-session message] fake prefix',
  '.',
  ' leading and trailing ',
]
const HUGE = 'x '.repeat(3_000) + '结果'.repeat(500) + '\nError: exit code 1'
const TOOLS = ['read', 'write', 'exec', 'web_search', 'mcp.tool:name', '3d-print', 'x'.repeat(80)]
const SIGNATURES = ['c2lnbmF0dXJlLW9mLXRoaW5raW5n', 'QUJDRA==', 'EqQBCkYIBRgCKkA5', 'not base64!', '']
const JPEG = Buffer.from('ffd8ffe000104a46494600010100000100010000ffc0000b080010001001011100ffd9', 'hex').toString(
  'base64',
)
const GIF = Buffer.from(
  '47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b',
  'hex',
).toString('base64')
const IMAGES: readonly UserBlock[] = [
  { type: 'image', data: PNG_1PX, mimeType: 'image/png' },
  { type: 'image', data: PNG_1PX, mimeType: 'image/jpeg' },
  { type: 'image', data: JPEG, mimeType: 'image/jpeg' },
  { type: 'image', data: GIF, mimeType: 'image/gif' },
  { type: 'image', data: `${PNG_1PX.slice(0, 20)}\n${PNG_1PX.slice(20)}`, mimeType: 'image/png' },
  { type: 'image', data: 'AAAA', mimeType: 'image/png' },
  { type: 'image', data: '', mimeType: '' },
]

/** A conversation as programs write it, before anybody damages it. */
export function generateEntries(random: Random, maxTurns = 4): Entry[] {
  const build = createBuilder(random)
  for (let turn = random.int(maxTurns); turn >= 0; turn--) build.turn()
  if (random.chance(0.7)) build.user()
  return build.entries
}

function createBuilder(random: Random) {
  const entries: Entry[] = []
  let writer: Writer = random.pick(WRITERS)
  let time = 1_000
  let calls = 0
  let stepId = 's0'
  const push = (part: object, round?: number): string => {
    const own = `e${entries.length + 1}`
    time += 500
    const base = { id: id(own), parentId: entries.at(-1)?.id ?? null, timestamp: new Date(time).toISOString() }
    const place = random.chance(0.8) ? (round === undefined ? { stepId } : { stepId, round }) : undefined
    entries.push(Object.assign(base, place, part) as unknown as Entry)
    return own
  }
  const message = (value: object, round?: number): string =>
    push({ type: 'message', message: Object.assign(value, { timestamp: time }) }, round)

  const blocks = (): UserBlock[] => {
    const content = random.many(1, 2, (): UserBlock => ({ type: 'text', text: random.pick(TEXTS) }))
    return random.chance(0.25)
      ? [...content, ...random.many(1, random.chance(0.1) ? 30 : 2, () => random.pick(IMAGES))]
      : content
  }

  const api = {
    entries,
    user(): void {
      stepId = `s${entries.length}`
      const content = random.chance(0.5) ? random.pick(TEXTS) : blocks()
      const provenance = random.chance(0.1)
        ? { provenance: { kind: 'inter_session', sourceSessionKey: 'agent:main:main' } }
        : {}
      message({ role: 'user', content, ...provenance })
      if (random.chance(0.1)) api.user()
    },
    turn(): void {
      api.user()
      if (random.chance(0.2)) writer = random.pick(WRITERS)
      const instruction = entries.length
      const rounds = random.int(3)
      for (let round = 0; round < rounds; round++) api.round(round)
      if (random.chance(0.85)) api.answer(rounds)
      if (random.chance(0.2)) api.extra()
      if (random.chance(0.25)) api.cleanup(instruction)
      if (random.chance(0.1)) api.compaction()
    },
    round(round: number): void {
      const ids = random.many(1, 3, () => callId())
      const content: AssistantBlock[] = [...artefacts(), ...(random.chance(0.4) ? [textBlock()] : [])]
      for (const one of ids) {
        content.push({
          type: 'toolCall',
          id: one,
          name: random.pick(TOOLS),
          arguments: random.pick([{}, { path: 'a.txt' }, { 查询: '天气 😀' }]),
          ...callArtefact(),
        })
      }
      const stopReason = random.pick([
        'toolUse',
        'toolUse',
        'toolUse',
        'toolUse',
        'aborted',
        'error',
        'length',
      ] as const)
      message(assistant(content, stopReason), round)
      for (const one of ids) if (random.chance(0.9)) message(result(one), round)
    },
    answer(round: number): void {
      message(
        assistant(
          [...artefacts(), textBlock()],
          random.pick(['stop', 'stop', 'stop', 'length', 'error', 'aborted'] as const),
        ),
        round,
      )
    },
    extra(): void {
      const kind = random.int(8)
      if (kind === 0) push({ type: 'custom_message', customType: 'note', content: random.pick(TEXTS), display: true })
      if (kind === 1)
        message({
          role: 'bashExecution',
          command: 'ls',
          output: random.pick(['', 'a\nb']),
          exitCode: random.int(2),
          cancelled: false,
          truncated: false,
        })
      if (kind === 2) push({ type: 'branch_summary', fromId: 'x', summary: 'went elsewhere' })
      if (kind === 3) push({ type: 'model_change', provider: writer.provider, modelId: writer.model })
      if (kind === 4)
        push({
          type: 'context_edit',
          targetId: id(`e${1 + random.int(entries.length)}`),
          replacement: random.chance(0.5) ? null : { content: 'edited' },
        })
      if (kind === 5) message({ role: 'system', content: 'be brief' })
      if (kind === 6) push({ type: 'unknown', raw: { type: 'leaf' } })
      if (kind === 7)
        push({
          type: 'custom',
          customType: 'clew.view',
          data: {
            decisions: [
              {
                entry: `e${1 + random.int(entries.length)}`,
                action: random.pick(['trim', 'clear', 'leave-out', 'truncate']),
                chars: 100,
              },
            ],
          },
        })
    },
    cleanup(instruction: number): void {
      const hidden = entries.slice(instruction, -1).map((entry) => entry.id)
      const record = push({
        type: 'custom',
        customType: 'clew.cleanup',
        data: { stepId, hidden, note: '[2 rounds left the context]', tokensBefore: 9, tokensAfter: 3, estimated: true },
      })
      if (random.chance(0.3)) push({ type: 'custom', customType: 'clew.restore', data: { cleanup: record } })
    },
    compaction(): void {
      const firstKeptEntryId = random.chance(0.9) ? random.pick(entries).id : id('lost')
      push({
        type: 'compaction',
        summary: random.pick(['the story so far', '', '到目前为止的总结']),
        firstKeptEntryId,
        tokensBefore: 100,
      })
      const undo = random.chance(0.3) ? planCompactionUndo(entries) : undefined
      if (undo !== undefined) push(undo.draft)
    },
  }

  function assistant(content: AssistantBlock[], stopReason: AssistantMessage['stopReason']): object {
    return { role: 'assistant', content, ...writer, usage: NO_USAGE, stopReason }
  }
  const textBlock = (): AssistantBlock => ({
    type: 'text',
    text: random.pick(TEXTS),
    ...(random.chance(0.2)
      ? { textSignature: random.pick(['{"id":"msg_1","phase":"final_answer"}', ...SIGNATURES]) }
      : {}),
  })

  function artefacts(): AssistantBlock[] {
    if (random.chance(0.5)) return []
    const thinking = random.pick(['let me think', '让我想想', ''])
    if (writer.api === 'openai-responses') return random.many(1, 2, () => reasoningItem(thinking))
    if (writer.api === 'openai-completions') {
      return [
        { type: 'thinking', thinking: 'hm', thinkingSignature: random.pick(['reasoning_content', 'reasoning', '']) },
      ]
    }
    if (writer.api === 'anthropic-messages' && random.chance(0.2)) {
      return [{ type: 'thinking', thinking: '[redacted]', thinkingSignature: 'EqQBCkYIBRgCKkA5', redacted: true }]
    }
    return [
      { type: 'thinking', thinking, ...(random.chance(0.8) ? { thinkingSignature: random.pick(SIGNATURES) } : {}) },
    ]
  }

  function reasoningItem(thinking: string): AssistantBlock {
    const sealed = random.chance(0.9) ? { encrypted_content: 'gAAA' } : {}
    const item = { type: 'reasoning', id: `rs_${random.int(50)}`, summary: [], ...sealed }
    return { type: 'thinking', thinking, thinkingSignature: JSON.stringify(item) }
  }

  function callArtefact(): object {
    return writer.api === 'google-generative-ai' && random.chance(0.7)
      ? { thoughtSignature: random.pick(SIGNATURES) }
      : {}
  }

  function callId(): string {
    calls++
    return random.pick([
      `toolu_${calls}`,
      `call_${calls}|fc_${calls}`,
      'call_1',
      'functions.read:0',
      `abcdefgh${calls % 10}`,
      `call-${calls}:${calls}`,
    ])
  }

  function result(toolCallId: string): object {
    const isError = random.chance(0.15)
    const texts = random.chance(0.03) ? [HUGE] : random.chance(0.1) ? [''] : TEXTS
    const content: UserBlock[] = [{ type: 'text', text: random.pick(texts) }]
    if (random.chance(0.15)) content.push(random.pick(IMAGES))
    const made = random.chance(0.05)
      ? { details: { reason: 'missing_tool_result' } }
      : { details: { filesWritten: ['a.txt'] } }
    return { role: 'toolResult', toolCallId, toolName: 'read', content, isError, ...made }
  }

  return api
}
