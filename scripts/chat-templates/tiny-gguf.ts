/**
 * A model file small enough to write by hand and complete enough for llama.cpp to load: one layer of the `llama`
 * architecture with arbitrary weights, and a vocabulary of the 256 bytes. It says nothing sensible; it is there so that
 * a real server renders real templates.
 */
const WIDTH = 32
const HEADS = 2
const SPECIAL = ['<unk>', '<s>', '</s>'] as const

const TYPE = { uint32: 4, int32: 5, float32: 6, string: 8, array: 9 } as const
/** As in `llama_token_type`: unknown, control, byte. */
const TOKEN_KIND = { unknown: 2, control: 3, byte: 6 } as const
const FLOAT32_TENSOR = 0
const ALIGNMENT = 32

export function tinyGguf(contextLength: number): Buffer {
  const tokens = [...SPECIAL, ...Array.from({ length: 256 }, (_, byte) => `<0x${hex(byte)}>`)]
  const kinds = tokens.map((_, at) => (at === 0 ? TOKEN_KIND.unknown : at < 3 ? TOKEN_KIND.control : TOKEN_KIND.byte))
  const metadata = [
    text('general.architecture', 'llama'),
    text('general.name', 'tiny'),
    number('llama.context_length', contextLength),
    number('llama.embedding_length', WIDTH),
    number('llama.block_count', 1),
    number('llama.feed_forward_length', WIDTH),
    number('llama.attention.head_count', HEADS),
    number('llama.attention.head_count_kv', HEADS),
    number('llama.rope.dimension_count', WIDTH / HEADS),
    number('llama.vocab_size', tokens.length),
    entry('llama.attention.layer_norm_rms_epsilon', TYPE.float32, float32(1e-5)),
    text('tokenizer.ggml.model', 'llama'),
    list('tokenizer.ggml.tokens', TYPE.string, tokens.map(string)),
    list(
      'tokenizer.ggml.scores',
      TYPE.float32,
      tokens.map(() => float32(0)),
    ),
    list('tokenizer.ggml.token_type', TYPE.int32, kinds.map(uint32)),
    number('tokenizer.ggml.unknown_token_id', 0),
    number('tokenizer.ggml.bos_token_id', 1),
    number('tokenizer.ggml.eos_token_id', 2),
  ]
  const tensors = tensorsFor(tokens.length)
  const head = Buffer.concat([
    Buffer.from('GGUF'),
    uint32(3),
    uint64(tensors.length),
    uint64(metadata.length),
    ...metadata,
    ...tensorTable(tensors),
  ])
  return Buffer.concat([padded(head), ...tensors.map(({ values }) => padded(values))])
}

interface Tensor {
  readonly name: string
  readonly shape: readonly number[]
  readonly values: Buffer
}

function tensorsFor(vocabulary: number): readonly Tensor[] {
  const square = [WIDTH, WIDTH]
  const layer: readonly (readonly [string, readonly number[]])[] = [
    ['attn_norm', [WIDTH]],
    ['attn_q', square],
    ['attn_k', square],
    ['attn_v', square],
    ['attn_output', square],
    ['ffn_norm', [WIDTH]],
    ['ffn_gate', square],
    ['ffn_up', square],
    ['ffn_down', square],
  ]
  return [
    tensor('token_embd.weight', [WIDTH, vocabulary]),
    ...layer.map(([name, shape]) => tensor(`blk.0.${name}.weight`, shape)),
    tensor('output_norm.weight', [WIDTH]),
    tensor('output.weight', [WIDTH, vocabulary]),
  ]
}

function tensor(name: string, shape: readonly number[]): Tensor {
  const count = shape.reduce((product, side) => product * side, 1)
  const values = Buffer.alloc(count * 4)
  // Any spread of small numbers does; the same ones every time keep the file the same.
  for (let at = 0; at < count; at++) values.writeFloatLE(((at * 7919) % 101) / 1000 - 0.05, at * 4)
  return { name, shape, values }
}

function tensorTable(tensors: readonly Tensor[]): readonly Buffer[] {
  let offset = 0
  return tensors.map(({ name, shape, values }) => {
    const row = [string(name), uint32(shape.length), ...shape.map(uint64), uint32(FLOAT32_TENSOR), uint64(offset)]
    offset += padded(values).length
    return Buffer.concat(row)
  })
}

function padded(bytes: Buffer): Buffer {
  const rest = bytes.length % ALIGNMENT
  return rest === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(ALIGNMENT - rest)])
}

const hex = (byte: number): string => byte.toString(16).toUpperCase().padStart(2, '0')

const entry = (key: string, type: number, value: Buffer): Buffer => Buffer.concat([string(key), uint32(type), value])
const text = (key: string, value: string): Buffer => entry(key, TYPE.string, string(value))
const number = (key: string, value: number): Buffer => entry(key, TYPE.uint32, uint32(value))
const list = (key: string, type: number, values: readonly Buffer[]): Buffer =>
  entry(key, TYPE.array, Buffer.concat([uint32(type), uint64(values.length), ...values]))

function string(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([uint64(bytes.length), bytes])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

function float32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return bytes
}
