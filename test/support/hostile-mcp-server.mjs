// An MCP server over stdio that misbehaves as its first argument says. Plain JavaScript without the SDK, because the SDK
// would not let it.
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const [, , behaviour = 'good', journal] = process.argv
if (journal) appendFileSync(journal, `${process.pid}\n`)

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const answer = (id, result) => send({ id, result })

const echo = {
  name: 'echo',
  description: 'says it again',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
}

if (behaviour === 'exits-with-words') {
  process.stderr.write(`starting\nMISSING TOKEN: set FOO, not ${process.env.SECRET_KEY}\n`)
  process.exit(3)
}

const LISTS = {
  lies: [
    echo,
    { name: 'no-schema-object', inputSchema: 'string' },
    { name: 'not-an-object', inputSchema: { type: 'array' } },
    { name: 'broken', inputSchema: { type: 'object', properties: 7 } },
    { name: 'dangling', inputSchema: { type: 'object', properties: { a: { $ref: '#/nowhere' } } } },
    { name: 'circle', inputSchema: { type: 'object', $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } } },
    {
      name: 'slow-pattern',
      inputSchema: { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } },
    },
    { name: 'bad output', inputSchema: { type: 'object' }, outputSchema: { type: 'object', required: ['never'] } },
    echo,
    { inputSchema: { type: 'object' } },
    42,
    { ...echo, name: 'only-as-task', execution: { taskSupport: 'required' } },
    { ...echo, name: 'perhaps-as-task', execution: { taskSupport: 'optional' } },
  ],
  'bad-names': [
    echo,
    ...['', ' ', 'a b', '../../x', 'x'.repeat(5_000), '\u001b[2J', 'time', 'files'].map((name) => ({ ...echo, name })),
  ],
  prototype: [
    echo,
    ...['__proto__', 'constructor', 'toString'].map((name) => ({ ...echo, name })),
    {
      name: 'odd',
      inputSchema: JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}},"__proto__":{"a":1}}'),
    },
  ],
  'many-tools': Array.from({ length: 5000 }, (_, i) => ({ ...echo, name: `tool-${i}` })),
}

let changing
let listed = [...(LISTS[behaviour] ?? [echo])]

function call(id, { name, arguments: args }) {
  switch (behaviour) {
    case 'hangs-in-call':
      return undefined
    case 'crashes-in-call':
      return process.exit(1)
    case 'floods-in-call': {
      const block = 'x'.repeat(1_000_000)
      const flood = () => process.stdout.write(block, flood)
      return flood()
    }
    case 'chatters': {
      const chatter = () => {
        for (let i = 0; i < 1000; i++) send({ method: 'notifications/message', params: { level: 'info', data: i } })
        setImmediate(chatter)
      }
      return chatter()
    }
    case 'endless-line': {
      const block = 'z'.repeat(1_000_000)
      process.stdout.write('{"jsonrpc":"2.0","id":1,"result":"')
      const grow = () => process.stdout.write(block, grow)
      return grow()
    }
    case 'floods-errors': {
      const block = `${'e'.repeat(999)}\n`.repeat(1_000)
      const flood = () => process.stderr.write(block, flood)
      flood()
      return answer(id, { content: [{ type: 'text', text: 'flooding' }] })
    }
    case 'deep-answer':
      return process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${'['.repeat(1_000_000)}\n`)
    case 'huge-answer':
      return answer(id, { content: [{ type: 'text', text: 'y'.repeat(2_000_000) }] })
    case 'nonsense-answer':
      return answer(id, { content: [{ type: 'video' }, 7, { type: 'image', data: 'AAAA', mimeType: 'text/html' }] })
    case 'refuses':
      return send({ id, error: { code: -32000, message: `no, and the key is ${process.env.SECRET_KEY}` } })
    case 'changes':
      listed = [echo, { ...echo, name: `new-${args.text}` }]
      send({ method: 'notifications/tools/list_changed' })
      return answer(id, { content: [{ type: 'text', text: 'changed' }] })
    case 'asks-back':
      send({ id: 'back', method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } })
      return answer(id, { content: [{ type: 'text', text: 'asked' }] })
    default:
      return answer(id, { content: [{ type: 'text', text: `${name}: ${args.text}` }] })
  }
}

/** One answer with two million tools, written as fast as it is read. */
function listMillions(id) {
  let left = 2_000
  const block = Array.from({ length: 1_000 }, (_, i) => `${JSON.stringify({ ...echo, name: `t${i}` })},`).join('')
  process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":[`)
  const grow = () => (left-- > 0 ? process.stdout.write(block, grow) : process.stdout.write('{}]}}\n'))
  grow()
}

function handle({ id, method, params }) {
  if (method === 'initialize') {
    const { protocolVersion } = params
    const serverInfo = { name: 'hostile', version: '1' }
    return answer(id, { protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo })
  }
  if (method === 'tools/list') {
    if (behaviour === 'millions-of-tools') return listMillions(id)
    if (behaviour === 'changing-lists') {
      changing ??= setInterval(() => send({ method: 'notifications/tools/list_changed' }), 5)
      listed = [echo, { ...echo, name: `tool-${Math.random()}`.slice(0, 20) }]
    }
    if (behaviour === 'endless-list') return answer(id, { tools: [echo], nextCursor: 'more' })
    return answer(id, { tools: listed })
  }
  if (method === 'tools/call') return call(id, params)
  return undefined
}

if (behaviour === 'ignores-sigterm') process.on('SIGTERM', () => undefined)
if (behaviour === 'exits-at-once') process.exit(3)
if (behaviour === 'hangs-at-start') {
  process.on('SIGTERM', () => undefined)
  setInterval(() => undefined, 1000)
} else if (behaviour === 'floods-at-start') {
  const block = 'z'.repeat(1_000_000)
  const flood = () => process.stdout.write(block, flood)
  flood()
} else {
  if (behaviour === 'greets') process.stdout.write('Welcome to the server!\n{"not": "a message"}\n')
  createInterface({ input: process.stdin }).on('line', (line) => handle(JSON.parse(line)))
}
