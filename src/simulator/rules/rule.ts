/**
 * What a provider demands of a request, as data. The tables are the content of `docs/maintainers/provider-rules.md`, and each entry
 * has a test that names it.
 */
export interface ProviderRule {
  /** One sentence a reader can check a request against. */
  readonly demand: string
  /** Where the demand was learnt: documentation, the provider's own validator, or a thread quoting its refusal. */
  readonly source: string
  /** When that source said so, ISO. */
  readonly date: string
  /** HTTP status of the refusal; 400 when absent. */
  readonly status?: number
  /** The provider's `type` and `code` in the error body, where it has them. */
  readonly type?: string
  readonly code?: string
  /** Only in the `strict` profile: older versions and other hosts of the API refuse this, the current service does not. */
  readonly strictOnly?: true
}

/** Rules by name. */
export type RuleTable = Readonly<Record<string, ProviderRule>>

/** A rule that a request breaks, and where. */
export interface RuleViolation {
  /** `api/rule`, as the docs list it. */
  readonly rule: string
  /** Where in the body, written as the provider writes paths. */
  readonly path: string
  /** In the provider's own words, so that clients that match on error text meet the real thing. */
  readonly message: string
  readonly status: number
  readonly type?: string
  readonly code?: string
}

/**
 * `strict` is what every version of the API accepts: the oracle for what we send. `current` is what the service refuses
 * today: what an honest simulator answers to a client of another make.
 */
export type RuleProfile = 'strict' | 'current'

/** What only the service that issued them can know about opaque values. Absent: they are judged by their form alone. */
export interface IssuedValues {
  /** True when this service signed exactly this content. */
  isGenuine(signature: string, content: string): boolean
  /** The reasoning item that has to stand before an item this service issued together with one. */
  reasoningBefore(itemId: string): string | undefined
}

/** What a check has to know besides the request. */
export interface CheckOptions {
  readonly profile?: RuleProfile
  readonly issued?: IssuedValues
  /** The exact size on the wire when it is known; otherwise it is computed where it could matter. */
  readonly bodyBytes?: number
}

/** Collects violations of one table. Nothing is reported twice for one place. */
export class Findings<Table extends RuleTable> {
  readonly #api: string
  readonly #table: Table
  readonly #profile: RuleProfile
  readonly #found: RuleViolation[] = []

  constructor(api: string, table: Table, profile: RuleProfile) {
    this.#api = api
    this.#table = table
    this.#profile = profile
  }

  add(name: keyof Table & string, path: string, message: string): void {
    const rule: ProviderRule | undefined = this.#table[name]
    if (rule === undefined || (rule.strictOnly === true && this.#profile === 'current')) return
    const full = `${this.#api}/${name}`
    if (this.#found.some((known) => known.rule === full && known.path === path)) return
    this.#found.push({
      rule: full,
      path,
      message,
      status: rule.status ?? 400,
      ...(rule.type === undefined ? {} : { type: rule.type }),
      ...(rule.code === undefined ? {} : { code: rule.code }),
    })
  }

  get all(): readonly RuleViolation[] {
    return this.#found
  }
}
