import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MissingInput } from './missing-input.ts'

const run = promisify(execFile)

/** With their own C library and loader, because they are newer than what most machines run. */
const PACKAGES = [
  'llama.cpp-tools',
  'libllama0',
  'libggml0',
  'libc6',
  'libgcc-s1',
  'libstdc++6',
  'libgomp1',
  'libssl3t64',
  'libzstd1',
  'zlib1g',
  'python3-jinja2',
  'python3-markupsafe',
]

/** Debian sid's packages unpacked below `cache`, from the mirror this machine uses; nothing is installed. */
export async function unpackPackages(cache: string): Promise<string> {
  const root = join(cache, 'root')
  if (existsSync(join(root, 'usr/bin/llama-server'))) return root
  const mirror = await debianMirror()
  const apt = await prepareApt(cache, mirror)
  await run('apt-get', [...apt, 'update'])
  const downloads = join(cache, 'packages')
  await mkdir(downloads, { recursive: true })
  await run('apt-get', [...apt, 'download', ...PACKAGES], { cwd: downloads })
  const partial = join(cache, 'unpacking')
  await rm(partial, { recursive: true, force: true })
  for (const name of await readdir(downloads)) {
    if (name.endsWith('.deb')) await run('dpkg', ['-x', join(downloads, name), partial])
  }
  await run('mv', [partial, root])
  return root
}

/** A configuration of its own, so that neither the machine's package lists nor its packages change. */
async function prepareApt(cache: string, mirror: string): Promise<readonly string[]> {
  const home = join(cache, 'apt')
  for (const folder of ['state/lists/partial', 'cache/archives/partial']) {
    await mkdir(join(home, folder), { recursive: true })
  }
  const sources = join(home, 'sources.list')
  const keys = '/usr/share/keyrings/debian-archive-keyring.gpg'
  await writeFile(sources, `deb [signed-by=${keys}] ${mirror} sid main\n`)
  await writeFile(join(home, 'status'), '')
  const options = {
    'Dir::State': join(home, 'state'),
    'Dir::State::status': join(home, 'status'),
    'Dir::Cache': join(home, 'cache'),
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '/dev/null',
    'APT::Architecture': 'amd64',
    'APT::Sandbox::User': 'root',
  }
  return Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])
}

/** The first mirror of Debian that apt is configured with. */
async function debianMirror(): Promise<string> {
  const folder = '/etc/apt/sources.list.d'
  const files = existsSync(folder) ? (await readdir(folder)).map((name) => join(folder, name)) : []
  for (const file of ['/etc/apt/sources.list', ...files]) {
    if (!existsSync(file)) continue
    const found = /\bhttps?:\/\/[^\s\]]+\/debian\/?(?=\s)/.exec(await readFile(file, 'utf8'))
    if (found !== null) return found[0]
  }
  throw new MissingInput(
    'apt knows no mirror of Debian here. Unpack the packages llama.cpp-tools, libllama0, libggml0 and what they depend ' +
      'on (with libc6), python3-jinja2 and python3-markupsafe into one folder, and name it with --root.',
  )
}
