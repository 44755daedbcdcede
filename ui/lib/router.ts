import { computed, signal } from '@preact/signals'

const address = signal(location.pathname + location.search)

window.addEventListener('popstate', () => {
  address.value = location.pathname + location.search
})

export function go(path: string, replace = false): void {
  if (path === address.value) return
  if (replace) history.replaceState(null, '', path)
  else history.pushState(null, '', path)
  address.value = path
}

export type Route =
  | { readonly page: 'live' }
  | { readonly page: 'start' }
  | { readonly page: 'conversations'; readonly key?: string }
  | { readonly page: 'xray'; readonly key: string; readonly n?: number }
  | { readonly page: 'timeline'; readonly key: string; readonly step?: string }
  | { readonly page: 'tokens' }
  | { readonly page: 'xiaoyi' }
  | { readonly page: 'search'; readonly text: string }
  | { readonly page: 'settings' }
  | { readonly page: 'logs' }
  | { readonly page: 'cluster' }
  | { readonly page: 'unknown' }

export const route = computed<Route>(() => routeOf(new URL(address.value, location.origin)))

export function routeOf(url: URL): Route {
  const [first = '', second, third, fourth] = url.pathname.split('/').slice(1).map(decode)
  switch (first) {
    case '':
      return { page: 'live' }
    case 'c':
      return conversationRoute(second, third, fourth)
    case 'start':
    case 'tokens':
    case 'xiaoyi':
    case 'settings':
    case 'logs':
    case 'cluster':
      return { page: first }
    case 'search':
      return { page: 'search', text: url.searchParams.get('q') ?? '' }
    default:
      return { page: 'unknown' }
  }
}

function conversationRoute(key: string | undefined, view: string | undefined, place: string | undefined): Route {
  if (key === undefined || key === '') return { page: 'conversations' }
  if (view === 'x') {
    const n = Number(place)
    return { page: 'xray', key, ...(Number.isInteger(n) && n > 0 ? { n } : {}) }
  }
  if (view === 't') return { page: 'timeline', key, ...(place === undefined ? {} : { step: place }) }
  return { page: 'conversations', key }
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** A piece of an address. Half a character, which a hostile text may hold, would make the browser throw. */
export function segment(text: string): string {
  return encodeURIComponent(text.replaceAll(/[\ud800-\udfff]/gu, '\ufffd'))
}

export const paths = {
  conversation: (key: string, entry?: string) =>
    `/c/${segment(key)}${entry === undefined ? '' : `?entry=${segment(entry)}`}`,
  xray: (key: string, n?: number) => `/c/${segment(key)}/x${n === undefined ? '' : `/${n}`}`,
  timeline: (key: string, step?: string) => `/c/${segment(key)}/t${step === undefined ? '' : `/${segment(step)}`}`,
  search: (text: string) => `/search?q=${segment(text)}`,
}

/** An earlier conversation under a key: it is read, and can take the place of the present one. */
export function earlierOf(key: string): { readonly of: string; readonly sessionId: string } | undefined {
  const [, of, sessionId] = /^(.+)#(sess_\w+)$/su.exec(key) ?? []
  return of === undefined || sessionId === undefined ? undefined : { of, sessionId }
}

/** The message an address points at, if it does. */
export function entryInAddress(): string | undefined {
  return new URLSearchParams(address.value.split('?')[1] ?? '').get('entry') ?? undefined
}
