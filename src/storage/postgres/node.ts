import { sleep } from '../../base/async.ts'
import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../base/database.ts'
import type { RunId, SessionKey } from '../../core/ids.ts'
import type { NodeLoad, Notice } from '../storage.ts'
import { fromColumn, toColumn } from './column-text.ts'
import type { HeldSessions } from './held-sessions.ts'
import type { Holds } from './holds.ts'

/** How long costs are known by the day and by the hour, as in a home. */
export interface UsageLimits {
  readonly days: number
  /** Rows by model and channel, and as many by session; an hour is kept whole. */
  readonly hours: number
}

export interface NodeOptions {
  readonly database: Pick<Database, 'query'>
  readonly clock: Clock
  readonly node: string
  readonly address: string
  readonly version: string
  readonly leaseMs: number
  readonly pollMs: number
  readonly rememberMs: number
  readonly usage: UsageLimits
  readonly held: HeldSessions
  readonly holds: Holds
  heard(notice: Notice): void
  /** Whether the database answered just now. */
  onReachable(isReachable: boolean): void
}

const BEAT = {
  name: 'node_beat',
  text: `insert into nodes as n (id, address, version, lease_until, turns, max_turns)
    values ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond', $5, $6)
    on conflict (id) do update set heartbeat_at = clock_timestamp(), lease_until = excluded.lease_until,
      address = excluded.address, version = excluded.version, turns = excluded.turns, max_turns = excluded.max_turns
    returning (select count(*) from nodes o where o.id <> $1 and o.lease_until > clock_timestamp()) as others,
      take_blame_back($1)`,
}
const STOPPING = {
  name: 'node_stopping',
  text: `with stopping as (update nodes set state = 'stopping' where id = $1),
      gone as (delete from sessions where node = $1 and not begun and key <> all ($2))
    update sessions set node = null where node = $1 and begun and key <> all ($2)`,
}
const RELEASE_ALL = {
  name: 'node_release',
  text: `with gone as (delete from sessions where node = $1 and not begun),
      free as (update accounts set node = null where node = $1),
      foreseen as (update messages set idle = true where state = 'open'
        and (node = $1 or key in (select key from sessions where node = $1)))
    update sessions set node = null where node = $1 and begun`,
}
const LEAVE = { name: 'node_leave', text: 'delete from nodes where id = $1' }
const EPOCHS = {
  name: 'held_epochs',
  text: 'select key, epoch, changed from sessions where key = any ($1) and node = $2',
}
const WAITING_HERE = {
  name: 'waiting_here',
  text: `select distinct m.key from messages m join sessions s on s.key = m.key
    where m.state = 'open' and s.node = $1 and m.node <> $1 limit 1000`,
}
/** A node that accepted something a moment ago is about to take it itself. */
const WAITING_ANYWHERE = {
  name: 'waiting_anywhere',
  text: `select m.key from messages m left join sessions s on s.key = m.key
    where m.state = 'open' and (s.node is null or not is_alive(s.node))
      and (m.stored_at < clock_timestamp() - interval '1 second' or not is_alive(m.node))
    group by m.key order by min(m.position) limit 100`,
}
const OTHERS = {
  name: 'node_others',
  text: 'select count(*) as others from nodes where id <> $1 and lease_until > clock_timestamp()',
}
const ROOM = {
  name: 'room_elsewhere',
  text: `select coalesce(sum(greatest(0, max_turns - turns)), 0) as turns from nodes
    where id <> $1 and state = 'live' and lease_until > clock_timestamp()`,
}
const REPLIES = {
  name: 'replies_waiting',
  text: `select channel, account, run from messages
    where not abandoned and answered_at > ms(clock_timestamp()) - 60000
      and (state = 'waiting' or (state = 'unknown' and not is_alive(answered_by))) limit 1000`,
}
/** Few enough for one statement not to hold anything up; there is another one when there is more. */
const FORGET_AT_ONCE = 1_000
const FORGET = {
  name: 'forget_messages',
  text: `delete from messages where run in (select run from messages
    where state <> 'open' and stored_at < clock_timestamp() - $1 * interval '1 millisecond'
      and coalesce(answered_at, 0) < ms(clock_timestamp()) - $1 limit ${FORGET_AT_ONCE})
    returning run`,
}
const FORGET_DAYS = {
  name: 'forget_days',
  text: `delete from usage where scope = 'day' and at <= ms(clock_timestamp()) / 86400000 - $1`,
}
/** Read from the newest row backwards along the key. */
const OLDEST_HOUR = {
  name: 'oldest_hour',
  text: `select at from (select distinct at, session_id, model, channel from usage where scope = $1
    order by at desc, session_id desc, model desc, channel desc offset $2 limit 1) as beyond`,
}
const FORGET_HOURS = {
  name: 'forget_hours',
  text: `delete from usage where ctid = any (array(
      select ctid from usage where scope = $1 and at < $2 limit ${FORGET_AT_ONCE})) returning at`,
}
const FORGET_NODES = {
  name: 'forget_nodes',
  text: `delete from nodes where lease_until < clock_timestamp() - interval '1 hour'
    and not exists (select from sessions where node = nodes.id)`,
}

interface Present {
  readonly key: string
  readonly epoch: number
  readonly changed: number
}

const FORGET_MS = 600_000
/** Longest wait for one of a node's own statements, which are small: a database that takes longer is away. */
const SILENT_MS = 3_000
const NO_TURNS: NodeLoad = { turns: 0, maxTurns: 0, waiting: 0 }

/**
 * This node's place among the others: a lease that is renewed by the database's clock, and a look now and then at what a
 * lost notification may have been about.
 */
export class Node {
  readonly #options: NodeOptions
  readonly #stopping = new AbortController()
  readonly #loops: Promise<void>[] = []
  /** There may be other nodes that have to hear of what happens here. */
  hasOthers = true
  #looking = Promise.resolve()
  #load = (): NodeLoad => NO_TURNS
  #reported = NO_TURNS.turns

  constructor(options: NodeOptions) {
    this.#options = { ...options, database: noticing(options) }
  }

  async start(load?: () => NodeLoad): Promise<void> {
    const { leaseMs, pollMs } = this.#options
    if (load !== undefined) this.#load = load
    await this.#beat()
    this.#loops.push(
      this.#repeat(Math.max(1, Math.floor(leaseMs / 3)), () => this.#beat()),
      this.#repeat(pollMs, () => this.poll()),
      this.#repeat(FORGET_MS, () => this.#forget()),
    )
  }

  /** Others see that it takes nothing new, and may take what nothing runs in. */
  async leaving(busy: readonly SessionKey[]): Promise<void> {
    const { database, node, held } = this.#options
    const kept = new Set(busy)
    for (const [key] of [...held.all()]) if (!kept.has(key)) held.drop(key)
    await database.query(STOPPING, [node, busy.map(toColumn)])
  }

  stop(): void {
    this.#stopping.abort()
    this.#options.holds.close()
  }

  /** Gives everything back at once: others need not wait for the lease to end. */
  async close(): Promise<void> {
    const { database, node } = this.#options
    this.stop()
    await Promise.all([...this.#loops, this.#looking])
    await database.query(RELEASE_ALL, [node])
    await database.query(LEAVE, [node])
  }

  /** Others see how many turns run here, when that changed since the last time. */
  async report(): Promise<void> {
    if (this.#load().turns !== this.#reported && !this.#stopping.signal.aborted) await this.#beat()
  }

  /** From now on notifications arrive: what came before has to be looked for. */
  listening(): void {
    if (this.#stopping.signal.aborted) return
    const looking = this.#countOthers().then(() => this.poll())
    this.#looking = looking.catch(() => undefined)
  }

  async poll(): Promise<void> {
    const { database, node, heard, held, holds, clock } = this.#options
    await this.report()
    await holds.check()
    const startedAt = clock.monotonic()
    await this.checkHeld([...held.all()].map(([key]) => key))
    held.looked(startedAt)
    for (const statement of [WAITING_HERE, WAITING_ANYWHERE]) {
      const values = statement === WAITING_HERE ? [node] : []
      for (const { key } of await database.query<{ key: string }>(statement, values))
        heard({ kind: 'message', key: fromColumn(key) as SessionKey, elsewhere: true })
    }
    await this.#lookForRoom()
    if (this.hasOthers) heard({ kind: 'look', elsewhere: true })
    for (const { channel, account, run } of await database.query<Record<'channel' | 'account' | 'run', string>>(
      REPLIES,
      [],
    ))
      heard({
        kind: 'reply',
        channel: fromColumn(channel),
        account: fromColumn(account),
        run: fromColumn(run) as RunId,
        elsewhere: true,
      })
  }

  async #countOthers(): Promise<void> {
    const { database, node } = this.#options
    const [row] = await database.query<{ others: number }>(OTHERS, [node])
    this.hasOthers = row?.others !== 0
  }

  async #lookForRoom(): Promise<void> {
    const { database, node, heard } = this.#options
    if (!this.hasOthers || this.#load().waiting === 0) return
    const [row] = await database.query<{ turns: number }>(ROOM, [node])
    if (row !== undefined && row.turns > 0) heard({ kind: 'room', turns: row.turns, elsewhere: true })
  }

  /** Whether the epochs of these sessions are still ours. */
  async checkHeld(keys: readonly SessionKey[]): Promise<void> {
    const { database, node, held, heard } = this.#options
    const known = new Map(held.all())
    const ours = keys.filter((key) => known.has(key))
    if (ours.length === 0) return
    const rows = await database.query<Present>(EPOCHS, [ours.map(toColumn), node])
    const present = new Map(rows.map((row) => [fromColumn(row.key), row]))
    for (const key of ours) {
      const [before, now] = [known.get(key), present.get(key)]
      if (before?.epoch === now?.epoch) {
        held.forgetBefore(key, now?.changed ?? 0)
        continue
      }
      if (held.epochOf(key) === before?.epoch) held.drop(key)
      heard({ kind: 'session', key, elsewhere: true })
    }
  }

  async #beat(): Promise<void> {
    const { database, node, address, version, leaseMs, clock, holds } = this.#options
    const askedAt = clock.monotonic()
    const { turns, maxTurns } = this.#load()
    this.#reported = turns
    const values = [node, address, version, leaseMs, turns, maxTurns]
    const [row] = await database.query<{ others: number }>(BEAT, values)
    this.hasOthers = row?.others !== 0
    holds.renewed(askedAt)
  }

  async #forget(): Promise<void> {
    const { database, rememberMs } = this.#options
    const { signal } = this.#stopping
    while (!signal.aborted && (await database.query(FORGET, [rememberMs])).length === FORGET_AT_ONCE);
    await this.#forgetUsage()
    await database.query(FORGET_NODES, [])
  }

  async #forgetUsage(): Promise<void> {
    const { database, usage } = this.#options
    const { signal } = this.#stopping
    await database.query(FORGET_DAYS, [usage.days])
    for (const scope of ['hour', 'session-hour']) {
      const [oldest] = await database.query<{ at: number }>(OLDEST_HOUR, [scope, usage.hours])
      if (oldest === undefined) continue
      const values = [scope, oldest.at]
      while (!signal.aborted && (await database.query(FORGET_HOURS, values)).length === FORGET_AT_ONCE);
    }
  }

  /** The database may be away: then the next time finds what this one missed. */
  async #repeat(everyMs: number, task: () => Promise<void>): Promise<void> {
    const { clock, onReachable } = this.#options
    const { signal } = this.#stopping
    for (;;) {
      try {
        await sleep(clock, everyMs, signal)
      } catch {
        return
      }
      await task().then(
        () => onReachable(true),
        () => onReachable(false),
      )
    }
  }
}

/** A line that holds everything back fails no statement: that nothing comes is noticed before anything gives up. */
function noticing({ database, clock, onReachable }: NodeOptions): Pick<Database, 'query'> {
  return {
    async query(statement, values) {
      const timer = clock.after(SILENT_MS, () => onReachable(false))
      try {
        return await database.query(statement, values)
      } finally {
        timer.cancel()
      }
    },
  }
}
