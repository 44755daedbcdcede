import { expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import { toGatewayError } from '../../src/core/errors.ts'
import type { MemoryFiles } from '../../src/testing/memory-files.ts'
import { seededRandom } from '../../src/testing/seeded-ids.ts'
import { MemoryGateway } from '../support/gateway.ts'

const SEED = 20_261_117
const HOMES = 210
const HOME = '/home/clew'
const WORDS = ['alpha', 'bravo', 'charlie']

type Damage = (bytes: Buffer, random: () => number) => Buffer | undefined

const DAMAGES: Readonly<Record<string, Damage>> = {
  flip(bytes, random) {
    const copy = Buffer.from(bytes)
    for (let count = 0; count < 5; count++) {
      const at = Math.floor(random() * copy.length)
      copy[at] = (copy[at] ?? 0) ^ (1 << Math.floor(random() * 8))
    }
    return copy
  },
  cut: (bytes, random) => bytes.subarray(0, Math.floor(random() * bytes.length)),
  zeros: (bytes) => Buffer.alloc(bytes.length),
  noise: (bytes, random) => Buffer.from(Array.from({ length: bytes.length }, () => Math.floor(random() * 256))),
  remove: () => undefined,
}

async function used(): Promise<MemoryGateway> {
  const gateway = await MemoryGateway.open({ seed: 5 })
  const client = await gateway.connect('?uid=u')
  for (const [at, word] of WORDS.entries()) await client.ask({ id: `${at}`, content: `remember ${word}`, session: 's' })
  await gateway.clock.advance(20_000)
  return gateway
}

async function pathsIn(files: MemoryFiles, directory: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const name of await files.list(directory)) {
    const path = `${directory}/${name}`
    if ((await files.stat(path))?.kind === 'directory') found.push(...(await pathsIn(files, path)))
    else found.push(path)
  }
  return found
}

async function harm(files: MemoryFiles, path: string, damage: Damage, random: () => number): Promise<void> {
  const handle = await files.open(path, 'read')
  const bytes = Buffer.from(await handle.read(0, handle.stat().size))
  await handle.close()
  const damaged = bytes.length === 0 ? bytes : damage(bytes, random)
  if (damaged === undefined) await files.remove(path)
  else files.plant(path, damaged)
}

/** What one damaged home comes to: everything is there, or what is missing was said, or the start is refused with a reason. */
async function outcomeOf(files: MemoryFiles, before: MemoryGateway): Promise<'intact' | 'said' | 'refused' | 'silent'> {
  let said = 0
  const log: typeof silentLog = {
    ...silentLog,
    warn: () => void said++,
    error: () => void said++,
    child: () => log,
  }
  const processes = before.processes.successor()
  const gateway = await MemoryGateway.open({ files, seed: 9, processes, ports: { log } }).catch((thrown: unknown) => {
    expect(toGatewayError(thrown).code).not.toBe('INTERNAL')
    return undefined
  })
  if (gateway === undefined) return 'refused'
  const { text } = await gateway.request('/api/sessions/s')
  await gateway.stop()
  if (WORDS.every((word) => text.includes(`remember ${word}`))) return 'intact'
  return said > 0 ? 'said' : 'silent'
}

it(`${HOMES} homes with one damaged file each (seed ${SEED}) start or say why not, and lose nothing in silence`, async () => {
  const random = seededRandom(SEED)
  const kinds = Object.keys(DAMAGES)
  const silent: string[] = []
  const outcomes = new Map<string, number>()
  for (let home = 0; home < HOMES; home++) {
    const before = await used()
    const files = before.files.kill()
    const paths = await pathsIn(files, HOME)
    const path = paths[Math.floor(random() * paths.length)] ?? ''
    const kind = kinds[home % kinds.length] ?? 'flip'
    const damage = DAMAGES[kind]
    if (damage !== undefined) await harm(files, path, damage, random)
    const outcome = await outcomeOf(files, before)
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    if (outcome === 'silent') silent.push(`${kind} ${path}`)
  }
  expect(silent).toEqual([])
  expect(outcomes.get('intact')).toBeGreaterThan(HOMES / 3)
}, 120_000)
