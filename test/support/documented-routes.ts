import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Every address that docs/protocol/http.md names, with `s` for the conversation and `1` for everything else. */
export function documentedRoutes(): readonly (readonly [method: string, path: string])[] {
  const text = readFileSync(join(import.meta.dirname, '../../docs/protocol/http.md'), 'utf8')
  const found = [...text.matchAll(/(?<=^\|.*)`(GET|POST|PATCH|DELETE) (\/api\/[^`?\s]*)/gmu)].map(
    ([, method = '', path = '']) =>
      [
        method,
        path
          .replaceAll('KEY', 's')
          .replaceAll(/NAME|ID|\/N$/gu, '/1')
          .replaceAll('//', '/'),
      ] as const,
  )
  return [...new Map(found.map((route) => [route.join(' '), route])).values()]
}
