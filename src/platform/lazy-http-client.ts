import type { ClosableHttpClient } from './undici-http-client.ts'

/** Loads the real client when it is asked to, or with the first request: a gateway that sends no request starts without it. */
export function createLazyHttpClient(): ClosableHttpClient {
  let loading: Promise<ClosableHttpClient> | undefined
  const load = (): Promise<ClosableHttpClient> => {
    loading ??= import('./undici-http-client.ts').then(({ createHttpClient }) => createHttpClient())
    return loading
  }
  return {
    prepare: async () => void (await load()),
    request: async (request, signal) => (await load()).request(request, signal),
    close: async () => (await loading)?.close(),
  }
}
