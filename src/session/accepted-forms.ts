import type { Clock } from '../base/clock.ts'
import type { AcceptedForms, RequestForm, TurnModel } from '../turn/deps.ts'

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
