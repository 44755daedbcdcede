import { defineConfig } from 'vitest/config'
import { FILES_ONLY_SUITES } from './test/postgres/files-only.ts'

/** Suites of the whole gateway: they run on files, and once more on PostgreSQL. */
const WHOLE_GATEWAY = ['test/flow/**/*.test.ts', 'test/conformance/**/*.test.ts', 'test/seeds/**/*.test.ts']

export default defineConfig({
  test: {
    // Starts PostgreSQL for the first test that asks for it.
    globalSetup: ['test/postgres/global-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: one fork per core, so that tests that start processes are not starved.
    pool: 'forks',
    maxWorkers: 2,
    sequence: { hooks: 'stack' },
    projects: [
      {
        extends: true,
        test: { name: 'files', include: ['test/**/*.test.ts'], exclude: ['**/node_modules/**'], globalSetup: [] },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: WHOLE_GATEWAY,
          exclude: ['**/node_modules/**', ...Object.keys(FILES_ONLY_SUITES)],
          env: { CLEW_TEST_STORAGE: 'postgres' },
          setupFiles: ['test/postgres/skip-files-only.ts'],
          globalSetup: [],
        },
      },
    ],
  },
})
