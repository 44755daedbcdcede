import type { Clock } from '../base/clock.ts'
import { isRecord, type JsonObject } from '../base/json.ts'
import type { Change } from '../core/change.ts'
import type { Storage } from '../storage/storage.ts'
import type { AcceptedForms, LearnedBy, ModelWindows, RequestForm, TurnModel } from '../turn/deps.ts'

// What refusals taught about models: the window they have, and the form of a request that they take.

export interface LearnedWindow {
  /** `provider/model`. */
  readonly model: string
  readonly contextWindow: number
  readonly by: LearnedBy
  /** What the configuration, the catalogue or a guess said then; when that changes, what was learned is void. */
  readonly instead: number
  readonly at: number
}

export interface LearnedWindowLimits {
  readonly models: number
  /** Then the source is believed again, and one refusal teaches anew: servers are restarted with larger windows. */
  readonly toldMs: number
  readonly halvedMs: number
  /** For a halved window of a catalogued model, which is not kept over a restart. */
  readonly catalogueMs: number
}

const DAY_MS = 24 * 60 * 60 * 1000
export const DEFAULT_LEARNED_WINDOWS: LearnedWindowLimits = {
  models: 1_000,
  toldMs: 30 * DAY_MS,
  halvedMs: DAY_MS,
  catalogueMs: 60 * 60 * 1000,
}

const SECTION = 'windows'
const SMALLEST_ANSWER_TOKENS = 64
/** A name and five fields. */
const BYTES_PER_WINDOW = 256

/** Windows of models as refusals taught them, per provider and model; what is kept is in the storage too. */
export class LearnedWindows implements ModelWindows {
  readonly #clock: Clock
  readonly #limits: LearnedWindowLimits
  readonly #kept = new Map<string, LearnedWindow>()
  /** Being tried, or true of this process only; they come before the kept ones. */
  readonly #tried = new Map<string, LearnedWindow>()

  constructor(clock: Clock, limits: LearnedWindowLimits = DEFAULT_LEARNED_WINDOWS) {
    this.#clock = clock
    this.#limits = limits
  }

  /** Takes over what earlier starts learned, and from then on what this one and others learn. */
  async load(storage: Pick<Storage, 'state' | 'watch'>): Promise<void> {
    const { state } = storage
    for (const [, value] of await state.entries(SECTION)) this.#keep(value)
    storage.watch((notice) => {
      if (notice.kind !== 'state' || notice.section !== SECTION) return
      if (notice.value !== undefined) return this.#keep(notice.value)
      const stored = state.get(SECTION, notice.key).then((value) => this.#keep(value))
      // While it cannot be looked up this process learns it from a refusal of its own.
      stored.catch(() => undefined)
    })
  }

  #keep(data: unknown): void {
    if (!isLearnedWindow(data)) return
    this.#kept.delete(data.model)
    this.#kept.set(data.model, data)
    this.#tried.delete(data.model)
    dropOldest(this.#kept, this.#limits.models)
  }

  get heldBytes(): number {
    return (this.#kept.size + this.#tried.size) * BYTES_PER_WINDOW
  }

  /** Those that still count, for people. */
  list(): readonly LearnedWindow[] {
    const names = new Set([...this.#kept.keys(), ...this.#tried.keys()])
    return [...names].flatMap((name) => this.#current(name) ?? [])
  }

  applyTo(model: TurnModel): TurnModel {
    const learned = this.#current(model.name)
    if (learned === undefined || learned.instead !== model.window.tokens) return model
    const { contextWindow, by } = learned
    const answer = Math.max(SMALLEST_ANSWER_TOKENS, Math.floor(contextWindow / 4))
    return {
      ...model,
      contextWindow,
      window: { ...model.window, learned: by },
      // Many servers add what is asked for to the prompt and refuse the sum.
      maxOutputTokens: Math.min(model.maxOutputTokens, answer),
    }
  }

  told(model: TurnModel, contextWindow: number): readonly Change[] {
    return [toChange(this.#entry(model, contextWindow, 'told'))]
  }

  tryHalf(model: TurnModel, contextWindow: number): void {
    this.#tried.set(model.name, this.#entry(model, contextWindow, 'halved'))
    dropOldest(this.#tried, this.#limits.models)
  }

  confirm(model: TurnModel): readonly Change[] {
    const tried = this.#tried.get(model.name)
    // The catalogue has its numbers from the provider: a refusal without one says little against them.
    return tried === undefined || model.window.source === 'catalogue' ? [] : [toChange(tried)]
  }

  giveUp(model: TurnModel): void {
    this.#tried.delete(model.name)
  }

  #entry(model: TurnModel, contextWindow: number, by: LearnedBy): LearnedWindow {
    return { model: model.name, contextWindow, by, instead: model.window.tokens, at: this.#clock.now() }
  }

  #current(name: string): LearnedWindow | undefined {
    const { toldMs, halvedMs, catalogueMs } = this.#limits
    const isFresh = (learned: LearnedWindow, forMs: number): boolean => this.#clock.now() - learned.at < forMs
    const tried = this.#tried.get(name)
    if (tried !== undefined && isFresh(tried, catalogueMs)) return tried
    const kept = this.#kept.get(name)
    return kept !== undefined && isFresh(kept, kept.by === 'told' ? toldMs : halvedMs) ? kept : undefined
  }
}

function dropOldest(windows: Map<string, LearnedWindow>, most: number): void {
  const [oldest] = windows.size > most ? windows.keys() : []
  if (oldest !== undefined) windows.delete(oldest)
}

function toChange(learned: LearnedWindow): Change {
  return { kind: 'set-state', section: SECTION, key: learned.model, value: { ...learned } satisfies JsonObject }
}

function isLearnedWindow(data: unknown): data is LearnedWindow {
  if (!isRecord(data)) return false
  const { model, contextWindow, by, instead, at } = data
  const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0
  const isKnown = by === 'told' || by === 'halved'
  return typeof model === 'string' && isCount(contextWindow) && isKnown && isCount(instead) && typeof at === 'number'
}

export interface AcceptedFormLimits {
  readonly models: number
  /** Refused requests in a row, without one in the usual form accepted in between, before the form is believed. */
  readonly proofs: number
  /** Then the usual form is tried again: a server may have been restarted with another model or template. */
  readonly forMs: number
}

export const DEFAULT_ACCEPTED_FORMS: AcceptedFormLimits = { models: 1_000, proofs: 2, forMs: 60 * 60 * 1000 }

interface Proof {
  readonly form: RequestForm
  readonly proofs: number
  /** Monotonic. */
  readonly at: number
}

/**
 * Which models took a request only after the usual form was refused. One refusal may be about one conversation; several
 * in a row are about the model, and asking it in the usual form first would cost one refusal per round.
 */
export class RememberedForms implements AcceptedForms {
  readonly #clock: Clock
  readonly #limits: AcceptedFormLimits
  readonly #known = new Map<string, Proof>()

  constructor(clock: Clock, limits: AcceptedFormLimits = DEFAULT_ACCEPTED_FORMS) {
    this.#clock = clock
    this.#limits = limits
  }

  get heldModels(): number {
    return this.#known.size
  }

  formFor({ name }: TurnModel): RequestForm {
    const known = this.#current(name)
    return known !== undefined && known.proofs >= this.#limits.proofs ? known.form : 'normal'
  }

  learn({ name }: TurnModel, form: RequestForm): boolean {
    const known = this.#current(name)
    const proofs = known?.form === form ? known.proofs + 1 : 1
    this.#known.delete(name)
    this.#known.set(name, { form, proofs, at: this.#clock.monotonic() })
    const [oldest] = this.#known.size > this.#limits.models ? this.#known.keys() : []
    if (oldest !== undefined) this.#known.delete(oldest)
    return proofs === this.#limits.proofs
  }

  forget({ name }: TurnModel): void {
    this.#known.delete(name)
  }

  #current(name: string): Proof | undefined {
    const known = this.#known.get(name)
    return known !== undefined && this.#clock.monotonic() - known.at < this.#limits.forMs ? known : undefined
  }
}
