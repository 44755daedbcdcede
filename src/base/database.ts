/**
 * PostgreSQL, as little of it as we need. Statements are prepared once per connection. What a statement changes is
 * durable when `query` resolves; one that failed with `unreachable` may have been done or not.
 */
export interface Database {
  query<Row>(statement: Statement, values: readonly SqlValue[]): Promise<readonly Row[]>
  /** All statements in one transaction on one connection; rolled back when `work` throws. */
  transaction<T>(work: (queries: Queries) => Promise<T>): Promise<T>
  /**
   * Hears notifications on a connection of its own. `onLost` is called once, when that connection ends by itself:
   * notifications were missed from then on, and nothing more comes.
   */
  listen(channels: readonly string[], heard: (payload: string) => void, onLost: () => void): Promise<Listening>
  readonly connections: number
  close(): Promise<void>
}

export interface Queries {
  query<Row>(statement: Statement, values: readonly SqlValue[]): Promise<readonly Row[]>
  /** Statements without values, several at once, however long they take; for migrations. */
  run(sql: string): Promise<void>
}

/** `name` must differ for every text. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/** Whole numbers of the database come back as numbers, JSON as text. */
export type SqlValue = string | number | boolean | null | Uint8Array | readonly (string | number | boolean | null)[]

export interface Listening {
  close(): Promise<void>
}

export interface DatabaseOptions {
  readonly url: string
  /** Where unqualified names of tables are looked up and made. */
  readonly schema: string
  /** Connections at most, besides the one that listens. */
  readonly pool: number
  /** Longest wait for a connection, and for the answer to a statement. */
  readonly timeoutMs: number
  /** Shown in `pg_stat_activity`. */
  readonly application: string
}

export interface Databases {
  /** Connects with the first statement, not before. */
  open(options: DatabaseOptions): Promise<Database>
}

/**
 * Why a statement failed: `unreachable` passes by waiting (away, or a standby that takes nothing) · `refused` and
 * `missing` need an operator (wrong password, no such database) · `full` has no space · `statement` is anything the server
 * says about the statement itself.
 */
export type DatabaseFailure = 'unreachable' | 'refused' | 'missing' | 'full' | 'statement'

export class DatabaseError extends Error {
  readonly failure: DatabaseFailure
  /** The server's five characters, or the errno of the connection. */
  readonly state: string

  constructor(failure: DatabaseFailure, state: string, cause: unknown) {
    super(`the database failed (${failure}, ${state})`, { cause })
    this.name = 'DatabaseError'
    this.failure = failure
    this.state = state
  }
}
