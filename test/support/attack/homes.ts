import { spawn } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { safeName } from '../../../src/channel/safe-name.ts'
import { ROOT, type BuiltGateway } from '../built-gateway.ts'
import { answerTo, clew, Finding, pause, require, type Attack, type AttackWorld } from './attack.ts'
import { openObedientModel } from './model.ts'

const ended = (gateway: BuiltGateway): Promise<{ readonly code: number | null } | undefined> =>
  Promise.race([gateway.exited, pause(15_000)]).then((end) => end ?? undefined)

/** A home with accepted messages that were never answered, left by `kill -9`. */
async function interrupted(world: AttackWorld, messages: number): Promise<string> {
  const home = await world.home(await openObedientModel(world))
  const gateway = await world.start(home)
  const client = await gateway.connect('?uid=a')
  for (let at = 0; at < messages; at++)
    client.send({ id: `m${at}`, content: '{"hang":true}', session: `s${at}`, ack: true })
  await client.until(() => client.frames.filter(({ type }) => type === 'accepted').length >= messages)
  await gateway.kill()
  return home
}

export const homeAttacks: readonly Attack[] = [
  {
    row: '1',
    title: 'several starts at once on the home of a killed gateway',
    async run(world) {
      const [rounds, starters] = [4, 4]
      for (let round = 0; round < rounds; round++) {
        const home = await world.home()
        await (await world.start(home)).kill()
        const gateways = Array.from({ length: starters }, () => world.spawn(home))
        const ready = await Promise.allSettled(gateways.map((gateway) => gateway.ready()))
        const owners = ready.filter(({ status }) => status === 'fulfilled').length
        require(owners === 1, `${owners} of ${starters} starters own the home`)
        await Promise.all(gateways.map((gateway) => gateway.kill()))
      }
      return `${rounds} rounds of ${starters} starts, one owner each`
    },
  },
  {
    row: 'held',
    title: 'a second start while the owner of the home is stopped',
    async run(world) {
      const home = await world.home()
      const owner = await world.start(home)
      const client = await owner.connect('?uid=a')
      const answers = Array.from({ length: 10 }, (_, at) =>
        answerTo(client, { id: `m${at}`, content: 'hello', session: 's' }),
      )
      owner.child.kill('SIGSTOP')
      try {
        answers.push(
          ...Array.from({ length: 10 }, (_, at) => answerTo(client, { id: `n${at}`, content: 'hello', session: 's' })),
        )
        const second = world.spawn(home)
        const end = await ended(second)
        require(end?.code === 1, 'a second gateway runs on the home of one that is only stopped')
        require(second.output.includes('HOME_IN_USE'), 'the second start does not say why it ended')
      } finally {
        owner.child.kill('SIGCONT')
      }
      for (const answer of await Promise.all(answers))
        require(answer['type'] === 'complete', `a message was answered with ${String(answer['code'])}`)
      const finals = client.frames.filter(({ type }) => type === 'complete' || type === 'error').length
      require(finals === 20, `${finals} answers to 20 messages`)
      return '20 messages, 10 of them while it was stopped: 20 answers; the second start was refused'
    },
  },
  {
    row: '10',
    title: 'text of a chat partner steers the terminal',
    async run(world) {
      const home = await world.home()
      const gateway = await world.start(home)
      const client = await gateway.connect('?uid=a')
      await answerTo(client, { id: '1', content: '\u001b]0;owned\u0007 \u001b[2J \u009b31m hello', session: 'plain' })
      client.send({ id: '2', content: 'hi', session: 'key\u001b[31m' })
      await pause(300)
      const outputs = await Promise.all([
        clew(home, 'sessions', 'list'),
        clew(home, 'sessions', 'show', 'plain'),
        clew(home, 'status'),
      ])
      for (const { output } of outputs)
        // oxlint-disable-next-line no-control-regex
        require(!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(output), 'raw control characters on the terminal')
      return 'a message and a key with ESC, OSC and C1; list, show, status'
    },
  },
  {
    row: '13',
    title: 'lost or damaged journal files go unnoticed',
    async run(world) {
      const damages: [string, (path: string) => Promise<unknown>][] = [
        ['deleted', (path) => rm(path)],
        ['cut short', (path) => truncate(path, 100)],
        [
          'noise',
          (path) => writeFile(path, Buffer.from(Array.from({ length: 4_096 }, () => Math.floor(world.random() * 256)))),
        ],
      ]
      for (const [name, damage] of damages) {
        const home = await interrupted(world, 5)
        const folder = join(home, 'journal')
        const files = (await readdir(folder)).filter((file) => file.endsWith('.log'))
        for (const file of files) await damage(join(folder, file))
        const gateway = world.spawn(home)
        await Promise.race([gateway.ready().catch(() => undefined), pause(20_000)])
        await pause(1_500)
        require(/warn|error|refus|damag|missing|lost/i.test(
          gateway.output,
        ), `a journal that was ${name} is not reported`)
        await gateway.kill()
      }
      return '3 damages with 5 open messages each, all reported'
    },
  },
  {
    row: '18',
    title: 'planted links under predictable names; a home others can write',
    quick: true,
    async run(world) {
      const home = await world.home()
      const target = join(home, 'target')
      await writeFile(target, 'untouched')
      for (const name of ['sessions.json.tmp', 'gateway.json.tmp', 'gateway.json.tmp-0123456789abcdef'])
        await symlink(target, join(home, name))
      const gateway = await world.start(home)
      const client = await gateway.connect('?uid=a')
      await answerTo(client, { id: '1', content: 'hello', session: 's' })
      await gateway.stop()
      require((await readFile(target, 'utf8')) === 'untouched', 'a link was followed and its target overwritten')
      const open = await world.home()
      await chmod(open, 0o777)
      const { output } = await clew(open, 'config', 'check')
      require(/writ|permission|mode|others/i.test(output), 'a home that others can write is not reported')
      return '3 links untouched; mode 777 reported'
    },
  },
  {
    row: '19',
    title: 'refusals to start that name neither file nor limit',
    quick: true,
    async run(world) {
      const home = await world.home()
      await (await world.start(home)).stop()
      const folder = join(home, 'journal')
      const [file = '1.log'] = await readdir(folder)
      await rm(join(folder, file), { recursive: true })
      await mkdir(join(folder, file))
      const gateway = world.spawn(home)
      const end = await ended(gateway)
      if (end !== undefined) {
        require(!gateway.output.includes('INTERNAL'), 'a folder in place of a journal file is INTERNAL')
        require(gateway.output.includes('journal'), 'the refusal does not name the file')
      }
      const few = await world.home()
      const main = join(ROOT, 'dist', 'cli', 'main.js')
      const child = spawn('sh', [
        '-c',
        `ulimit -n 64; exec "${process.execPath}" "${main}" start --home "${few}" --port 0`,
      ])
      let output = ''
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (piece: Buffer) => (output += piece.toString()))
      let isOver = false
      const exited = new Promise((resolve) => child.on('exit', resolve)).then(() => (isOver = true))
      for (let waited = 0; !isOver && !/is ready/.test(output) && waited < 30_000; waited += 20) await pause(20)
      child.kill('SIGKILL')
      await exited
      require(!output.includes('INTERNAL'), 'too few file descriptors are INTERNAL')
      return 'a folder as journal file, 64 file descriptors'
    },
  },
  {
    row: '21',
    title: 'a file name of 100 Chinese characters from a phone',
    quick: true,
    async run() {
      const bytes = Buffer.byteLength(safeName(`${'汉'.repeat(100)}.png`))
      require(bytes <= 255, `the name on disk has ${bytes} bytes`)
      return `${bytes} bytes on disk`
    },
  },
  {
    row: 'held',
    title: 'kill -9 under load loses or repeats something',
    async run(world) {
      const home = await world.home()
      let accepted = 0
      for (let round = 0; round < 5; round++) {
        const gateway = await world.start(home)
        const client = await gateway.connect('?uid=a')
        for (let at = 0; at < 20; at++)
          client.send({ id: `r${round}-${at}`, content: 'hello', session: `s${at % 3}`, ack: true })
        await pause(50 + world.random() * 300)
        accepted += client.frames.filter(({ type }) => type === 'accepted').length
        await gateway.kill()
      }
      const gateway = await world.start(home)
      const client = await gateway.connect('?uid=a&resume=0')
      for (let tries = 0; tries < 300; tries++) {
        const status = (await (await fetch(`${gateway.url}/api/status`)).json()) as { replies: { open: number } }
        if (status.replies.open === 0) break
        if (tries === 299) throw new Finding(`${status.replies.open} accepted messages stay open`)
        await pause(100)
      }
      await client.close()
      return `5 kills, ${accepted} accepted, none left open`
    },
  },
  {
    row: 'held',
    title: 'homes with flipped, cut and zeroed files',
    async run(world) {
      let [started, refused] = [0, 0]
      for (let round = 0; round < 8; round++) {
        const home = await interrupted(world, 2)
        const names = (await readdir(home, { recursive: true, withFileTypes: true })).filter(
          (entry) => entry.isFile() && !entry.name.startsWith('bridge') && !entry.name.includes('lock'),
        )
        const victim = names[Math.floor(world.random() * names.length)]
        if (victim === undefined) continue
        const path = join(victim.parentPath, victim.name)
        const bytes = await readFile(path)
        if (bytes.length > 0) {
          const at = Math.floor(world.random() * bytes.length)
          bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(world.random() * 8))
          await writeFile(path, round % 2 === 0 ? bytes : bytes.subarray(0, at))
        }
        const gateway = world.spawn(home)
        const isReady = await Promise.race([
          gateway.ready().then(
            () => true,
            () => false,
          ),
          pause(30_000).then(() => undefined),
        ])
        require(isReady !== undefined, `it hangs on a damaged ${victim.name}`)
        if (isReady) started++
        else {
          refused++
          require(!gateway.output.includes('INTERNAL'), `a damaged ${victim.name} is INTERNAL`)
        }
        await gateway.kill()
      }
      return `8 damages: ${started} started, ${refused} refused, none hung`
    },
  },
]
