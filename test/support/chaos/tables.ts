import pg from 'pg'

/** The tables as an operator reads them, with the driver alone. */
export interface Tables {
  readonly messages: readonly MessageRow[]
  readonly transcripts: readonly { readonly session_id: string; readonly entries: number }[]
  readonly entries: readonly EntryRow[]
}

export interface MessageRow {
  readonly run: string
  readonly key: string
  readonly account: string
  readonly position: number
  readonly state: string
  readonly seq: number
  readonly message_id: string
}

export interface EntryRow {
  readonly session_id: string
  readonly position: number
  readonly id: string
  readonly parent: string | null
  readonly line: string
}

const MESSAGES = `select run, key, account, position::int as position, state, seq::int as seq,
  message->>'messageId' as message_id from messages order by position`
const ENTRIES = 'select session_id, position, id, parent, line from entries order by session_id, position'
const LEFT = `select t.session_id, t.entries from transcripts t
  where t.session_id <> (select session_id from sessions where key = $1)
    and exists (select from entries e where e.session_id = t.session_id and e.line like '%in ' || $1 || '.%')`

/** Reads through a connection of its own; while the database restarts it asks again. */
export class TableReader {
  readonly #url: string
  readonly #schema: string
  /** The highest epoch of each key, and where one was lower than before. */
  readonly #epochs = new Map<string, number>()
  readonly backwards: string[] = []
  readonly #stopping = new AbortController()
  #sampling: Promise<void> = Promise.resolve()
  samples = 0

  constructor(url: string, schema: string) {
    this.#url = url
    this.#schema = schema
  }

  async query<Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    for (let attempt = 0; ; attempt++) {
      const client = new pg.Client({ connectionString: this.#url, options: `-c search_path=${this.#schema}` })
      client.on('error', () => undefined)
      try {
        await client.connect()
        return (await client.query({ text, values: [...values] })).rows as Row[]
      } catch (error) {
        if (attempt >= 600) throw error
        await new Promise((resolve) => setTimeout(resolve, 100))
      } finally {
        await client.end().catch(() => undefined)
      }
    }
  }

  async read(): Promise<Tables> {
    return {
      messages: await this.query<MessageRow>(MESSAGES),
      transcripts: await this.query('select session_id, entries from transcripts'),
      entries: await this.query<EntryRow>(ENTRIES),
    }
  }

  async openMessages(): Promise<number> {
    const [row] = await this.query<{ open: number }>(`select count(*)::int as open from messages where state = 'open'`)
    return row?.open ?? 0
  }

  /** Lengths of a session's transcripts that are not its present one. */
  async left(session: string): Promise<Readonly<Record<string, number>>> {
    const rows = await this.query<{ session_id: string; entries: number }>(LEFT, [session])
    return Object.fromEntries(rows.map(({ session_id: id, entries }) => [id, entries]))
  }

  startSampling(everyMs: number): void {
    const sample = async (): Promise<void> => {
      while (!this.#stopping.signal.aborted) {
        await this.#sampleEpochs()
        await new Promise((resolve) => setTimeout(resolve, everyMs))
      }
    }
    this.#sampling = sample().catch((error: unknown) => void this.backwards.push(`sampling failed: ${String(error)}`))
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#sampling
  }

  async #sampleEpochs(): Promise<void> {
    this.samples++
    for (const { key, epoch } of await this.query<{ key: string; epoch: string }>('select key, epoch from sessions')) {
      const before = this.#epochs.get(key) ?? 0
      if (Number(epoch) < before) this.backwards.push(`the epoch of ${key} went from ${before} to ${epoch}`)
      this.#epochs.set(key, Math.max(before, Number(epoch)))
    }
  }
}
