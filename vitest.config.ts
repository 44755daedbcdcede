import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/longest-first.ts'
import { FILES_ONLY_SUITES } from './test/postgres/files-only.ts'

/** Suites of the whole gateway: they run on files, and once more on PostgreSQL. */
const WHOLE_GATEWAY = [
  'test/system/cli.test.ts',
  'test/system/http-door.test.ts',
  'test/system/poisoned-message.test.ts',
  'test/flow/**/*.test.ts',
  'test/conformance/**/*.test.ts',
  'test/seeds/**/*.test.ts',
]

/** They look at the heap or processor time of their process, which files before them would leave marks in. */
const OWN_PROCESS = [
  'test/flow/xray-budget.test.ts',
  'test/unit/testing/loop-stalls.test.ts',
  'test/unit/transcript/held-bytes.test.ts',
  'test/unit/transcript/large-append.test.ts',
  'test/unit/turn/long-texts.test.ts',
]

export default defineConfig({
  test: {
    // Starts PostgreSQL for the first test that asks for it.
    globalSetup: ['test/postgres/global-setup.ts'],
    // They end what hangs; on a machine many times slower than ours nothing else reaches them.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // For two cores: a third of the time a fork waits for a page, a database or a process that it started.
    pool: 'forks',
    maxWorkers: 3,
    // A test holds no state in a module, so that its modules are loaded once per fork and not once per file.
    isolate: false,
    // A module is compiled once, and not for each project anew; what did not change, not in the next run either.
    experimental: { fsModuleCache: true },
    sequence: { hooks: 'stack', sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: 'files',
          include: ['test/**/*.test.ts'],
          exclude: ['**/node_modules/**', ...OWN_PROCESS],
          globalSetup: [],
        },
      },
      {
        extends: true,
        test: { name: 'measured', include: OWN_PROCESS, isolate: true, globalSetup: [] },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: WHOLE_GATEWAY,
          exclude: ['**/node_modules/**', ...Object.keys(FILES_ONLY_SUITES)],
          env: { CLEW_TEST_STORAGE: 'postgres' },
          setupFiles: ['test/postgres/each-test.ts'],
          globalSetup: [],
        },
      },
    ],
  },
})
