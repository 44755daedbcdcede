import './lib/require-node.mjs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from './build.mjs'
import { install } from './install.mjs'
import { main, root } from './lib/run.mjs'

await main(async () => {
  await install()
  await build()
})

// In this very process: a signal reaches the gateway itself, and nobody stands between it and its exit code.
const command = join(root, 'dist', 'cli', 'main.js')
process.argv = [process.argv[0], command, 'start', ...process.argv.slice(2)]
await import(pathToFileURL(command).href)
