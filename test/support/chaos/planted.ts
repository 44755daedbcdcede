import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../built-gateway.ts'

/** One place of the built program, and what stands there instead. */
type Patch = readonly [text: string, instead: string]

/**
 * Faults that the checker must find, with the disturbances (`FAULTS`) that bring each to light. They are made in a copy of the built program; nothing shipped can have them.
 */
export const PLANTED: Readonly<Record<string, { readonly by: readonly string[]; readonly patches: readonly Patch[] }>> =
  {
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
        ['this.#repeat(pollMs, () => this.poll())', 'this.#repeat(pollMs, async () => void 0)'],
        ['onListening: () => this.#node.listening()', 'onListening: () => void 0'],
      ],
    },
    'answer-before-commit': {
      by: ['the line is cut'],
      patches: [
        [
          'const committed = this.#commit(answers, together);',
          `for (const { run, content } of answers) {
        const early = await this.#storage.inbox.find(run);
        if (early?.state !== 'open') continue;
        const { key, channel, account, messageId, replyTo } = early.message;
        const seq = await this.#storage.outbox.nextSeq(channel, account);
        await this.#channels.deliver({ run, key, channel, account, messageId, replyTo, seq, content, redelivered: false });
      }
      const committed = this.#commit(answers, together);`,
        ],
      ],
    },
    'commit-before-disk': {
      by: ['PostgreSQL crashes'],
      patches: [
        ['options: `-c search_path=${schema}`', 'options: `-c search_path=${schema} -c synchronous_commit=off`'],
      ],
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
      by: ['the line is cut', 'SIGSTOP within the lease'],
      patches: [
        ["update sessions set epoch = nextval('epochs'), node = null where key = c->>'key'", "perform c->>'key'"],
      ],
    },
    'stop-takes-nothing': {
      by: ['the line delays', 'SIGSTOP within the lease'],
      patches: [['await task(await storage.ownership.takeOver(key))', 'await task(void 0)']],
    },
    'answered-again': {
      by: ['SIGSTOP beyond the lease', 'the line delays'],
      patches: [["from messages where run = c->>'run' and state = 'open'", "from messages where run = c->>'run'"]],
    },
    'group-applied-again': {
      by: ['the line is cut', 'pg_terminate_backend'],
      patches: [
        ['if known.last_batch = batch then return', 'if false then return'],
        ['if known.last_batch > batch then', 'if false then'],
      ],
    },
    'answered-elsewhere-unnoticed': {
      by: ['SIGSTOP beyond the lease', 'the line delays'],
      patches: [['if (this.#deps.open.isSureUnder(run, epoch)) return true;', 'return true;']],
    },
  }

/** A copy of the built program, with this fault or none: what to start, and what takes it away again. */
export async function plant(fault: string | undefined): Promise<{ readonly program: string; remove(): Promise<void> }> {
  const patches = fault === undefined ? [] : PLANTED[fault]?.patches
  if (patches === undefined)
    throw new Error(`no fault is called ${fault}; there are ${Object.keys(PLANTED).join(', ')}`)
  const folder = await mkdtemp(join(tmpdir(), 'clew-planted-'))
  const dist = join(folder, 'dist')
  await cp(join(ROOT, 'dist'), dist, { recursive: true })
  await cp(join(ROOT, 'package.json'), join(folder, 'package.json'))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const left = new Set(patches)
  for (const { parentPath, name } of await readdir(dist, { recursive: true, withFileTypes: true }).then((all) =>
    all.filter((entry) => entry.isFile() && /\.(?:js|sql)$/u.test(entry.name)),
  )) {
    const path = join(parentPath, name)
    const before = await readFile(path, 'utf8')
    let text = before
    for (const patch of patches) {
      if (!text.includes(patch[0])) continue
      left.delete(patch)
      text = text.replaceAll(patch[0], () => patch[1])
    }
    if (text !== before) await writeFile(path, text)
  }
  if (left.size > 0)
    throw new Error(`the built program has no place for ${fault}: ${[...left].map(([text]) => text).join()}`)
  return { program: join(dist, 'cli', 'main.js'), remove: () => rm(folder, { recursive: true, force: true }) }
}
