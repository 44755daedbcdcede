import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    // Starts PostgreSQL for the first test that asks for it.
    globalSetup: ['test/postgres/global-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: one fork per core, so that tests that start processes are not starved.
    pool: 'forks',
    maxWorkers: 2,
    sequence: { hooks: 'stack' },
  },
})
