import type { ImageResizer } from '../../src/base/images.ts'
import type { Platform } from '../../src/app/platform.ts'

/** For programs without a decoder: pictures that fit are used as they are, others are left out. */
export const noResizer: ImageResizer = { resize: () => Promise.resolve(undefined) }

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
