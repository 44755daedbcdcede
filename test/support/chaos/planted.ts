import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../built-gateway.ts'

/** One place of the built program, and what stands there instead. */
type Patch = readonly [text: string, instead: string]

interface Planted {
  readonly by: readonly string[]
  /** So many times as many resets, cancels and deletes: for faults that only a stop brings to light. */
  readonly stops?: number
  readonly patches: readonly Patch[]
}

/**
 * Faults that the checker must find, with the disturbances (`FAULTS`) that bring each to light. They are made in a copy
 * of the built program; nothing shipped can have them.
 */
export const PLANTED: Readonly<Record<string, Planted>> = {
  'epoch-unchecked': {
    by: ['SIGSTOP beyond the lease', 'the line holds everything back'],
    patches: [["if t ? 'epoch' and not exists (", "if false and t ? 'epoch' and not exists ("]],
  },
  'lease-by-node-time': {
    by: ['kill -9'],
    patches: [
      [
        "clock_timestamp() + $4 * interval '1 millisecond', $5",
        "clock_timestamp() + ($4 + ${Number(process.env.CLEW_CHAOS_CLOCK_MS)}) * interval '1 millisecond', $5",
      ],
    ],
  },
  'no-poll': {
    by: ['no node hears another'],
    patches: [
      ['this.#repeat(pollMs,()=>this.poll())', 'this.#repeat(pollMs,async()=>void 0)'],
      ['onListening:()=>this.#node.listening()', 'onListening:()=>void 0'],
    ],
  },
  'answer-before-commit': {
    by: ['the line is cut'],
    patches: [
      [
        'const committed=this.#commit(answers,together);',
        `for (const { run, content } of answers) {
        const early = await this.#storage.inbox.find(run);
        if (early?.state !== 'open') continue;
        const { key, channel, account, messageId, replyTo } = early.message;
        const seq = await this.#storage.outbox.nextSeq(channel, account);
        await this.#channels.deliver({ run, key, channel, account, messageId, replyTo, seq, content, redelivered: false });
      }
      const committed=this.#commit(answers,together);`,
      ],
    ],
  },
  'commit-before-disk': {
    by: ['PostgreSQL crashes'],
    patches: [["set_config('synchronous_commit', 'on', false)", "set_config('synchronous_commit', 'off', false)"]],
  },
  'copies-unrecognised': {
    by: ['the line is cut'],
    patches: [["known := recall(a->>'fingerprint'", "known := null; perform recall(a->>'fingerprint'"]],
  },
  'order-by-node-time': {
    by: ['kill -9', 'SIGSTOP beyond the lease'],
    patches: [['channel = $2) order by position', 'channel = $2) order by accepted_at']],
  },
  'same-epoch-after-take-over': {
    by: ['SIGSTOP beyond the lease', 'the line holds everything back'],
    patches: [["do update set node = me, epoch = nextval('epochs')", 'do update set node = me']],
  },
  'numbers-not-reserved': {
    by: ['the line is cut'],
    patches: [['do update set next_seq = a.next_seq + many', 'do update set next_seq = a.next_seq + 1']],
  },
  'reset-raises-no-epoch': {
    by: ['the line delays', 'SIGSTOP within the lease'],
    stops: 4,
    patches: [
      ["update sessions set epoch = nextval('epochs'), node = null where key = c->>'key'", "perform c->>'key'"],
    ],
  },
  'stop-takes-nothing': {
    by: ['the line delays', 'SIGSTOP within the lease'],
    stops: 6,
    patches: [['await task(await storage.ownership.takeOver(key))', 'await task(void 0)']],
  },
  'answered-again': {
    by: ['SIGSTOP beyond the lease', 'the line delays'],
    stops: 6,
    patches: [["from messages where run = c->>'run' and state = 'open'", "from messages where run = c->>'run'"]],
  },
  'group-applied-again': {
    by: ['answers of the database are lost', 'the line holds everything back for longer than anything waits'],
    patches: [
      ['if known.last_batch = batch then return', 'if false then return'],
      ['if known.last_batch > batch then', 'if false then'],
    ],
  },
  'answered-elsewhere-unnoticed': {
    by: ['the line delays', 'SIGSTOP within the lease'],
    stops: 4,
    patches: [['if(this.#deps.open.isSureUnder(run,epoch))return true;', 'return true;']],
  },
}

function programFiles(dist: string): readonly string[] {
  return readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:js|sql)$/u.test(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name))
}

/** Places of planted faults that the built program does not have: those faults cannot be made. */
export function missingPlaces(): readonly string[] {
  const texts = programFiles(join(ROOT, 'dist')).map((path) => readFileSync(path, 'utf8'))
  return Object.values(PLANTED)
    .flatMap(({ patches }) => patches.map(([text]) => text))
    .filter((place) => !texts.some((text) => text.includes(place)))
}

/** A copy of the built program, with this fault or none: what to start, and what takes it away again. */
export async function plant(fault: string | undefined): Promise<{ readonly program: string; remove(): Promise<void> }> {
  const patches = fault === undefined ? [] : PLANTED[fault]?.patches
  if (patches === undefined)
    throw new Error(`no fault is called ${fault}; there are ${Object.keys(PLANTED).join(', ')}`)
  const missing = missingPlaces().filter((place) => patches.some(([text]) => text === place))
  if (missing.length > 0) throw new Error(`the built program has no place for ${fault}: ${missing.join()}`)
  const folder = await mkdtemp(join(tmpdir(), 'clew-planted-'))
  const dist = join(folder, 'dist')
  await cp(join(ROOT, 'dist'), dist, { recursive: true })
  await cp(join(ROOT, 'package.json'), join(folder, 'package.json'))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const path of programFiles(dist)) {
    const before = readFileSync(path, 'utf8')
    let text = before
    for (const [place, instead] of patches) text = text.replaceAll(place, () => instead)
    if (text !== before) writeFileSync(path, text)
  }
  return { program: join(dist, 'cli', 'main.js'), remove: () => rm(folder, { recursive: true, force: true }) }
}
