import { join } from 'node:path'
import { defineConfig } from 'vite'

/** The dashboard: static files that the gateway serves from `dist/ui`. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  resolve: { alias: { 'clew/client': join(import.meta.dirname, '../src/client/index.ts') } },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist/ui',
    emptyOutDir: true,
    assetsDir: 'assets',
    // The content security policy allows no inline data but pictures.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    // Browsers that know `light-dark()`: the colours are not doubled for older ones.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    reportCompressedSize: false,
  },
})
