export type { EncodedRequest, ModelEvent, ModelProvider, ModelRequest } from './provider.ts'
export type { ExtraProvider } from './registry.ts'
export type { ModelInfo } from './catalogue.ts'
export type { Prices } from './usage.ts'
