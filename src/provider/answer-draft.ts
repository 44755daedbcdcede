import { GrowingText } from '../base/text.ts'
import { parseForeignJson, type JsonObject } from '../base/json.ts'
import { NO_USAGE, type AssistantBlock, type AssistantMessage, type StopReason, type Usage } from '../core/message.ts'
import { parseJsonObject } from './json-object.ts'
import type { ModelApi, ModelEvent } from './provider.ts'

export interface TextDraft {
  readonly type: 'text'
  text: GrowingText
  signature: string | undefined
  raw: JsonObject | undefined
}

export interface ThinkingDraft {
  readonly type: 'thinking'
  text: GrowingText
  signature: string | undefined
  redacted: boolean
  raw: JsonObject | undefined
}

export interface CallDraft {
  readonly type: 'toolCall'
  id: string
  name: string
  /** Fragments of JSON, joined. */
  json: GrowingText
  signature: string | undefined
  raw: JsonObject | undefined
}

export type BlockDraft = TextDraft | ThinkingDraft | CallDraft

export type FinishedMessage = Omit<AssistantMessage, 'timestamp'>

/**
 * An answer while it streams. Blocks keep the order in which they began; previews pile up until they are taken, and
 * neighbouring ones of a kind become one, so a burst of tiny deltas costs its readers one event.
 */
export class AnswerDraft {
  readonly #blocks: BlockDraft[] = []
  #previews: ModelEvent[] = []
  /** The newest preview while it can still grow. */
  #growing: { readonly type: 'text-delta' | 'thinking-delta'; delta: string } | undefined
  #calls = 0
  responseId: string | undefined
  usage: Usage = NO_USAGE
  /** Set by the decoder when the provider said why it stopped: from then on the answer is complete. */
  stopReason: StopReason | undefined
  raw: Record<string, JsonObject[string]> = {}

  get blocks(): readonly BlockDraft[] {
    return this.#blocks
  }

  get lastBlock(): BlockDraft | undefined {
    return this.#blocks.at(-1)
  }

  /** True once a part of the answer itself may have been seen by a person. */
  visible = false

  openText(): TextDraft {
    return this.#push({ type: 'text', text: new GrowingText(), signature: undefined, raw: undefined })
  }

  openThinking(): ThinkingDraft {
    return this.#push({
      type: 'thinking',
      text: new GrowingText(),
      signature: undefined,
      redacted: false,
      raw: undefined,
    })
  }

  openCall(id: string, name: string): CallDraft {
    const call = this.#push<CallDraft>({
      type: 'toolCall',
      id,
      name,
      json: new GrowingText(),
      signature: undefined,
      raw: undefined,
    })
    if (name !== '') this.announce(call)
    return call
  }

  /** Tells the readers that a call has begun; for calls whose name comes late. */
  announce(call: CallDraft): void {
    this.#growing = undefined
    this.#previews.push({ type: 'tool-call-start', index: this.#calls++, name: call.name })
  }

  append(block: TextDraft | ThinkingDraft, delta: string): void {
    if (delta === '') return
    block.text.append(delta)
    if (block.type === 'text') this.visible = true
    this.#preview(block.type === 'text' ? 'text-delta' : 'thinking-delta', delta)
  }

  takePreviews(): readonly ModelEvent[] {
    const taken = this.#previews
    if (taken.length > 0) this.#previews = []
    this.#growing = undefined
    return taken
  }

  build(identity: { readonly api: ModelApi; readonly provider: string; readonly model: string }): FinishedMessage {
    const content = this.#blocks.flatMap(toBlock)
    const asked = this.stopReason ?? 'stop'
    // Many compatible servers say `stop` behind tool calls.
    const stopReason = asked === 'stop' && content.some((block) => block.type === 'toolCall') ? 'toolUse' : asked
    return {
      role: 'assistant',
      content,
      ...identity,
      ...(this.responseId === undefined ? {} : { responseId: this.responseId }),
      usage: this.usage,
      stopReason,
      ...(Object.keys(this.raw).length === 0 ? {} : { raw: this.raw }),
    }
  }

  #push<Block extends BlockDraft>(block: Block): Block {
    this.#blocks.push(block)
    return block
  }

  #preview(type: 'text-delta' | 'thinking-delta', delta: string): void {
    if (this.#growing?.type === type) {
      this.#growing.delta += delta
      return
    }
    this.#growing = { type, delta }
    this.#previews.push(this.#growing)
  }
}

function toBlock(draft: BlockDraft): readonly AssistantBlock[] {
  const raw = draft.raw === undefined ? {} : { raw: draft.raw }
  if (draft.type === 'toolCall') {
    return [
      {
        type: 'toolCall',
        id: draft.id,
        name: draft.name,
        ...toArguments(draft.json.toString()),
        ...(draft.signature === undefined ? {} : { thoughtSignature: draft.signature }),
        ...raw,
      },
    ]
  }
  if (draft.text.length === 0 && draft.signature === undefined) return []
  if (draft.type === 'text') {
    const signature = draft.signature === undefined ? {} : { textSignature: draft.signature }
    return [{ type: 'text', text: draft.text.toString(), ...signature, ...raw }]
  }
  return [
    {
      type: 'thinking',
      thinking: draft.text.toString(),
      ...(draft.signature === undefined ? {} : { thinkingSignature: draft.signature }),
      ...(draft.redacted ? { redacted: true } : {}),
      ...raw,
    },
  ]
}

/**
 * Arguments are run only when they are exactly what the model wrote: a cut-off `{"path": "/tm` is never completed by
 * guessing.
 */
function toArguments(json: string): { readonly arguments: JsonObject; readonly invalidArguments?: string } {
  if (json.trim() === '' || json.trim() === 'null') return { arguments: {} }
  const parsed = parseJsonObject(json) ?? parseJsonObject(unquoted(json))
  return parsed === undefined ? { arguments: {}, invalidArguments: json } : { arguments: parsed }
}

/** Some models put the object into a JSON string. */
function unquoted(json: string): string {
  const value = json.trimStart().startsWith('"') ? parseForeignJson(json) : undefined
  return typeof value === 'string' ? value : ''
}
