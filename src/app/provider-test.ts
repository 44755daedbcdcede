import { isRecord, type JsonObject } from '../base/json.ts'
import type { Config, ProviderConfig } from '../config/config.ts'
import { checkProviderEntry } from '../config/values.ts'
import { GatewayError, toGatewayError, type ErrorCode } from '../core/errors.ts'
import { openProviders } from './agent.ts'
import type { Platform } from './platform.ts'

const MAX_TEXT_CHARS = 200

/** One small question to a model that is not configured yet. The entry, its key included, lives for this call only. */
export async function testProvider(
  { name, entry, model }: Readonly<Record<string, unknown>>,
  platform: Platform,
  signal: AbortSignal,
): Promise<JsonObject> {
  if (typeof name !== 'string' || typeof model !== 'string' || !isRecord(entry))
    throw new GatewayError('FIELD_INVALID', 'name, entry and model are needed', { field: 'entry' })
  const checked = checkProviderEntry(name, entry as JsonObject)
  if (typeof checked === 'string') return { ok: false, code: 'CONFIG_INVALID', error: checked }
  const outcome = await tryModel({ name, settings: checked, model }, platform, signal)
  return { ...outcome }
}

export interface ModelToTry {
  /** The provider's name in the configuration. */
  readonly name: string
  readonly settings: ProviderConfig
  /** As the provider knows it. */
  readonly model: string
}

export type TryOutcome =
  | { readonly ok: true; readonly firstByteMs: number; readonly text: string }
  | { readonly ok: false; readonly code: ErrorCode; readonly error: string }

/** One small question, asked once: what is wrong is to be seen now, not after retries. */
export function tryModel(
  { name, settings, model }: ModelToTry,
  platform: Pick<Platform, 'http' | 'clock' | 'ids'>,
  signal: AbortSignal,
): Promise<TryOutcome> {
  return tryConfiguredModel({ model: [`${name}/${model}`], providers: { [name]: settings } }, platform, signal)
}

/** The same for the first model of a configuration. */
export async function tryConfiguredModel(
  { model: [ref], providers }: Pick<Config, 'model' | 'providers'>,
  platform: Pick<Platform, 'http' | 'clock' | 'ids'>,
  signal: AbortSignal,
): Promise<TryOutcome> {
  const { clock } = platform
  try {
    const once = Object.fromEntries(
      Object.entries(providers).map(([name, entry]) => [name, { ...entry, maxRetries: 0 }]),
    )
    const { provider, model } = openProviders(platform, { model: [ref], providers: once }, []).resolve(ref)
    const request = provider.encode({
      model,
      system: 'You are being tested. Answer with one short sentence.',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Say hello.' }], timestamp: 0 }],
      tools: [],
      maxOutputTokens: 256,
      thinkingLevel: 'off',
      cacheKey: 'provider-test',
    })
    const started = clock.monotonic()
    let firstByteMs: number | undefined
    let text = ''
    for await (const event of provider.stream(request, signal)) {
      firstByteMs ??= clock.monotonic() - started
      if (event.type === 'text-delta') text += event.delta
      if (text.length >= MAX_TEXT_CHARS) break
    }
    return { ok: true, firstByteMs: firstByteMs ?? clock.monotonic() - started, text: text.slice(0, MAX_TEXT_CHARS) }
  } catch (thrown) {
    const error = toGatewayError(thrown)
    return { ok: false, code: error.code, error: error.message }
  }
}
