import './lib/require-node.mjs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { install } from './install.mjs'
import { main, root, tool } from './lib/run.mjs'

/** `npm run demo:cluster`: PostgreSQL and three nodes on this machine, and a client that loses one of them. */
await main(async () => {
  await install()
  await install('test/postgres')
  await build()
  const { code } = await tool('tsx', [join(root, 'scripts', 'demo-cluster.ts')], { inherit: true })
  process.exit(code)
})
