import { noResizer } from '../../src/base/image-resizer.ts'
import type { Platform } from '../../src/app/platform.ts'

/** Ports a test does not use: reaching for one fails loudly. */
export const inertPorts: Pick<Platform, 'commands' | 'modules' | 'resizer'> = {
  commands: {
    baseEnvironment: () => ({}),
    start: () => {
      throw new Error('no programs in this test')
    },
  },
  modules: {
    importModule: () => Promise.reject(new Error('no modules in this test')),
    resolvePath: (directory, path) => `${directory}/${path}`,
  },
  resizer: noResizer,
}
