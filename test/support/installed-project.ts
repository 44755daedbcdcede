import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT, run } from './built-gateway.ts'

type Ran = Awaited<ReturnType<typeof run>>

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>
}

/** A project of a user, with the package installed from the tarball that `npm publish` would send. */
export class InstalledProject {
  readonly folder: string
  readonly #scratch: string

  private constructor(scratch: string) {
    this.#scratch = scratch
    this.folder = join(scratch, 'my agent')
  }

  /**
   * Without a network: the packages that the lock file names for users are put into `node_modules` beforehand, so npm
   * finds whatever the tarball asks for, and fails when it asks for more. It removes what nothing asks for.
   */
  static async create(): Promise<InstalledProject> {
    const project = new InstalledProject(await mkdtemp(join(tmpdir(), 'clew-installed-')))
    await mkdir(project.folder)
    await writeFile(
      join(project.folder, 'package.json'),
      JSON.stringify({ name: 'my-agent', version: '7.7.7', private: true, type: 'module' }),
    )
    await project.#npm('pack', ROOT, '--silent', '--pack-destination', project.#scratch)
    const [tarball = ''] = (await readdir(project.#scratch)).filter((name) => name.endsWith('.tgz'))
    await project.#copyDependencies()
    await project.#npm('rebuild')
    await project.#npm('install', join(project.#scratch, tarball), '--no-audit', '--no-fund')
    return project
  }

  async #copyDependencies(): Promise<void> {
    const { packages } = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as Lock
    const used = Object.entries(packages)
      .filter(([path, { dev }]) => path !== '' && dev !== true)
      .map(([path]) => path)
      // Packages for other platforms are in the lock file and not in the folder.
      .filter((path) => path.lastIndexOf('node_modules/') === 0 && existsSync(join(ROOT, path)))
    for (const path of used) await this.#copy(path)
  }

  /** The compiler and its declarations of Node, as a user of TypeScript has them. */
  async addTypes(): Promise<void> {
    for (const name of ['@types/node', '@types/ws', 'undici-types']) await this.#copy(`node_modules/${name}`)
  }

  #copy(path: string): Promise<void> {
    return cp(join(ROOT, path), join(this.folder, path), { recursive: true })
  }

  async write(file: string, text: string): Promise<void> {
    await writeFile(join(this.folder, file), text)
  }

  /** One of the examples that came with the package, at the same place in the project. */
  async copyExamples(): Promise<void> {
    await cp(join(this.folder, 'node_modules', 'clew', 'examples'), join(this.folder, 'examples'), { recursive: true })
  }

  /** `npx …`, as a person types it in the project. */
  npx(...args: readonly string[]): Promise<Ran> {
    return run('npx', ['--offline', ...args], { cwd: this.folder, env: this.env })
  }

  node(...args: readonly string[]): Promise<Ran> {
    return run(process.execPath, args, { cwd: this.folder, env: this.env })
  }

  /** Checks files with the compiler of the repository. */
  check(...files: readonly string[]): Promise<Ran> {
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2023', '--types', 'node']
    const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
    return this.node(tsc, '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', ...options, ...files)
  }

  get env(): NodeJS.ProcessEnv {
    const cache = join(this.#scratch, 'cache')
    return { PATH: process.env['PATH'], HOME: this.#scratch, npm_config_cache: cache }
  }

  async #npm(...args: readonly string[]): Promise<void> {
    const all = [...args, '--ignore-scripts', '--offline', '--loglevel=error']
    const { code, output } = await run('npm', all, { cwd: this.folder, env: this.env })
    if (code !== 0) throw new Error(`npm ${args[0] ?? ''} failed: ${output}`)
  }

  remove(): Promise<void> {
    return rm(this.#scratch, { recursive: true, force: true, maxRetries: 5 })
  }
}
