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

stopWithNpm()
// In this very process: a signal reaches the gateway itself, and no process stands between it and its exit code.
const command = join(root, 'dist', 'cli', 'main.js')
process.argv = [process.argv[0], command, 'start', ...process.argv.slice(2)]
await import(pathToFileURL(command).href)

/**
 * npm hands a signal to the shell it runs scripts with, and dash dies of it without passing it on. So that no process is left
 * behind with the port, a gateway whose npm is gone stops as if the signal had come here.
 */
function stopWithNpm() {
  if (process.env.npm_lifecycle_event === undefined) return
  const shell = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(watch)
    process.kill(process.pid, 'SIGTERM')
  }, 500)
  watch.unref()
}
