/** The part of a test framework that contract suites need; vitest's and node:test's own functions fit. */
export interface ContractRunner {
  describe(name: string, body: () => void): void
  it(name: string, body: () => Promise<void>): void
}
