import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const importsOf = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) =>
      [...readFileSync(`${folder}/${name}`, 'utf8').matchAll(/from '([^']+)'/g)].map((match) => match[1] ?? ''),
    )

describe('the pipeline and its judges', () => {
  it('share no code: the rule checkers import nothing of the history, the history nothing of them', () => {
    expect(importsOf('src/simulator/rules').filter((path) => /history|provider|wire-ids/.test(path))).toEqual([])
    expect(importsOf('src/history').filter((path) => /simulator|provider|transcript|turn\//.test(path))).toEqual([])
  })
  it('the history imports base and core only', () => {
    const outside = importsOf('src/history').filter((path) => !/^(\.\/|\.\.\/(base|core)\/|node:crypto)/.test(path))
    expect(outside).toEqual([])
  })
})
