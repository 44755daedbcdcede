/** The only source of randomness. `SeededIds` makes a whole run repeatable. */
export interface Ids {
  uuid(): string
  /** `length` hexadecimal digits, not guessable in the platform's implementation. */
  hex(length: number): string
  /** A number in [0, 1), for jitter and sampling, never for secrets. */
  fraction(): number
}
