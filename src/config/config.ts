import type { ProviderType } from '../core/known-providers.ts'
import type { FileConfig } from './schema.ts'

/** Everything readable, nothing writable, and an optional key is absent rather than undefined. */
type Settled<T> = T extends (infer Item)[]
  ? readonly Settled<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Settled<Exclude<T[Key], undefined>> }
    : T

type File = Settled<FileConfig>

/**
 * The whole configuration, defaults filled in, frozen. Keys are those of `bridge.json`; durations written as text
 * (`contextPruning.ttl`) are milliseconds here.
 */
export type Config = Omit<File, '$schema' | 'model' | 'providers'> & {
  /** The model that answers, then those that step in for it. */
  readonly model: readonly [string, ...string[]]
  readonly providers: Readonly<Record<string, ProviderConfig>>
}

export type ProviderConfig = Omit<File['providers'][string], 'type' | 'api'> & { readonly type: ProviderType }
