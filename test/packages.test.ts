import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

interface Locked {
  readonly integrity?: string
  readonly resolved?: string
  readonly link?: boolean
  readonly dev?: boolean
  readonly optional?: boolean
  readonly hasInstallScript?: boolean
  readonly license?: string
}

function lockedIn(folder: string): readonly (readonly [name: string, package_: Locked])[] {
  const lock = JSON.parse(readFileSync(join(ROOT, folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>
  }
  return Object.entries(lock.packages).filter(([name, { link }]) => name !== '' && link !== true)
}

function manifestOf(folder: string): Record<string, Record<string, string> | undefined> {
  return JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as never
}

const FREE = /^(?:MIT|ISC|0BSD|Apache-2\.0|BSD-[23]-Clause|BlueOak-1\.0\.0|CC0-1\.0)$/u

describe('what is installed', () => {
  it.each(['.', 'test/oracles', 'test/browser', 'test/postgres'])('from %s is known by its hash alone', (folder) => {
    const locked = lockedIn(folder)
    expect(locked.length).toBeGreaterThan(0)
    expect(locked.filter(([, { integrity }]) => integrity?.startsWith('sha512-') !== true)).toEqual([])
    expect(locked.filter(([, { resolved }]) => resolved !== undefined)).toEqual([])
  })

  it.each(['.', 'test/oracles', 'test/browser', 'test/postgres'])('from %s is pinned to one version', (folder) => {
    const { dependencies = {}, devDependencies = {}, optionalDependencies = {} } = manifestOf(folder)
    const versions = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+[\w.+-]*$/u.test(version))).toEqual([])
  })

  it('with the package runs no script of its own', () => {
    const scripted = lockedIn('.').filter(([, { dev, hasInstallScript }]) => dev !== true && hasInstallScript === true)
    expect(scripted).toEqual([])
  })

  it('with the package is free to use; what is not quite that comes only with the optional picture resizer', () => {
    const production = lockedIn('.').filter(([, { dev }]) => dev !== true)
    const others = production.filter(([, { license = '' }]) => !FREE.test(license))
    expect(others.filter(([name, { optional }]) => !name.includes('/@img/sharp') || optional !== true)).toEqual([])
  })
})
