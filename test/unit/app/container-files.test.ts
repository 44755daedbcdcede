import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { DEFAULTS } from '../../../src/config/defaults.ts'
import { readConfigText } from '../../../src/config/load.ts'
import { runClew } from '../../support/run-clew.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

describe('the Dockerfile', () => {
  const lines = read('Dockerfile')
    .replaceAll(/\\\n\s*/gu, '')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const rest = (instruction: string): readonly string[] =>
    lines.flatMap((line) => (line.startsWith(`${instruction} `) ? [line.slice(instruction.length + 1)] : []))

  it('builds on named versions only, and ends as a user without rights', () => {
    for (const image of rest('FROM')) expect(image).toMatch(/^[a-z]+:\d+\.\d+[\w.-]*(?: AS [a-z]+)?$/u)
    expect(rest('USER')).toEqual(['node'])
    expect(lines.findLastIndex((line) => line.startsWith('RUN'))).toBeLessThan(
      lines.findIndex((line) => line.startsWith('USER')),
    )
    expect(lines.filter((line) => /^ADD |curl |wget |sudo |:latest/u.test(line))).toEqual([])
  })

  it('runs the command of the package on its own port, with a health check there', () => {
    const port = String(DEFAULTS.listen.port)
    expect(rest('EXPOSE')).toEqual([port])
    expect(rest('HEALTHCHECK')[0]).toContain(`http://127.0.0.1:${port}/healthz`)
    const { bin } = JSON.parse(read('package.json')) as { bin: Record<string, string> }
    const [entry] = JSON.parse(rest('ENTRYPOINT')[0] ?? '[]') as string[]
    expect(Object.keys(bin)).toContain(entry)
    expect(JSON.parse(rest('CMD')[0] ?? '[]')).toEqual(['start', '--host', '0.0.0.0'])
    expect(rest('ENV')[0]).toContain('CLEW_HOME=/data')
    expect(rest('VOLUME')).toEqual(['/data'])
  })

  it('its Node is one that the package runs on', () => {
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } }
    expect(engines.node).toBe('>=20.19.0')
    expect(rest('FROM')[0]).toMatch(/^node:2[2-9]\./u)
  })

  it('what the build needs is not left out by .dockerignore', () => {
    const ignored = read('.dockerignore').trim().split('\n')
    for (const needed of ['src', 'ui', 'scripts', 'docs', 'examples', 'package.json', 'package-lock.json', '.npmrc'])
      expect(ignored).not.toContain(needed)
    expect(ignored).toContain('**/node_modules')
  })
})

interface Service {
  readonly build?: string
  readonly image?: string
  readonly ports?: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly volumes: readonly string[]
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: { readonly test: readonly string[] }
}

describe('compose.yaml', () => {
  const { services, volumes } = parse(read('compose.yaml')) as {
    services: Readonly<Record<'clew' | 'postgres', Service>>
    volumes: Readonly<Record<string, unknown>>
  }

  it('names only volumes, files, services and ports that exist', () => {
    for (const { volumes: mounts } of Object.values(services)) {
      for (const mount of mounts) {
        const [source = ''] = mount.split(':')
        const isThere = source.startsWith('.') ? existsSync(join(ROOT, source)) : Object.hasOwn(volumes, source)
        expect({ mount, isThere }).toEqual({ mount, isThere: true })
      }
    }
    expect(Object.keys(services.clew.depends_on ?? {})).toEqual(['postgres'])
    expect(services.postgres.healthcheck?.test.join(' ')).toContain('pg_isready')
    expect(services.clew.ports).toEqual([`127.0.0.1:${DEFAULTS.listen.port}:${DEFAULTS.listen.port}`])
    expect(services.postgres.image).toMatch(/^postgres:\d+\.\d+/u)
    expect(services.clew.build).toBe('.')
  })

  it('gives the database the user, name and password that the address has', () => {
    const { POSTGRES_USER, POSTGRES_DB } = services.postgres.environment
    expect(services.clew.environment['DATABASE_URL']).toBe(
      `postgres://${POSTGRES_USER}:\${POSTGRES_PASSWORD}@postgres:5432/${POSTGRES_DB}`,
    )
  })

  it('its configuration keeps conversations in that database, with the variables that it sets', async () => {
    const { POSTGRES_PASSWORD } = services.postgres.environment
    expect(POSTGRES_PASSWORD).toMatch(/^\$\{POSTGRES_PASSWORD:\?/u)
    const url = services.clew.environment['DATABASE_URL']?.replace('${POSTGRES_PASSWORD}', 'secret') ?? ''
    const env = { CLEW_TOKEN: 'x'.repeat(32), DATABASE_URL: url }
    for (const name of Object.keys(env)) expect(Object.keys(services.clew.environment)).toContain(name)
    const config = readConfigText('bridge.json', read('examples/container/bridge.json'), env)
    expect(config.listen).toMatchObject({ host: '0.0.0.0', port: DEFAULTS.listen.port, token: env.CLEW_TOKEN })
    expect(config.storage).toMatchObject({ kind: 'postgres', url: 'postgres://clew:secret@postgres:5432/clew' })
    const home = join(ROOT, 'examples/container')
    expect(await runClew(['config', 'check', '--home', home], env)).toMatchObject({ code: 0, stderr: '' })
    const missing = await runClew(['config', 'check', '--home', home], { CLEW_TOKEN: env.CLEW_TOKEN })
    expect(missing.code).toBe(1)
    expect(missing.stdout + missing.stderr).toContain('DATABASE_URL')
  })

  it('is of the version of the package', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string }
    expect(services.clew.image).toBe(`clew:${version}`)
  })
})
