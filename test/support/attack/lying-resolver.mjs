// Loaded into the gateway with --import: every name below `lying.test` resolves to this machine in a way of its own.
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'

const PUBLIC = { address: '93.184.216.34', family: 4 }
const HERE = { address: '127.0.0.1', family: 4 }
const asked = new Map()

const WAYS = {
  private: () => [HERE],
  mixed: () => [PUBLIC, HERE],
  rebinding: (time) => (time % 2 === 1 ? [HERE] : [HERE, PUBLIC]),
  mapped: () => [{ address: '::ffff:127.0.0.1', family: 6 }],
  empty: () => [],
  nonsense: () => [{ address: 'localhost', family: 4 }],
  'second-time': (time) => (time === 1 ? [{ address: '64:ff9b::7f00:1', family: 6 }] : [HERE]),
}

const original = dns.lookup
dns.lookup = (host, options, callback) => {
  const way = WAYS[host.split('.lying.test')[0]]
  if (way === undefined || !host.endsWith('.lying.test')) return original(host, options, callback)
  const time = (asked.get(host) ?? 0) + 1
  asked.set(host, time)
  const found = way(time)
  process.stderr.write(`asked for ${host}\n`)
  const done = typeof options === 'function' ? options : callback
  queueMicrotask(() => {
    if (options?.all === true) done(null, found)
    else done(null, found[0]?.address, found[0]?.family)
  })
}
syncBuiltinESMExports()
