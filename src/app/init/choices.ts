import type { Environment } from '../../config/environment.ts'
import { GatewayError } from '../../core/errors.ts'
import { knownProvider, providersInEnvironment } from '../../core/known-providers.ts'
import { catalogueIds } from '../../provider/catalogue.ts'
import type { InitChoices } from './bridge-text.ts'

/** The flags of `clew init`, or the answers to its questions. */
export interface InitFlags {
  readonly model?: string
  readonly key?: string
  readonly baseUrl?: string
  readonly token?: string
  readonly xiaoyi?: string
}

const TOKEN_DIGITS = 64

/** Fills in what the environment tells: a key that is set there is referred to, never copied. */
export function chooseSettings(
  flags: InitFlags,
  { env, hex }: { readonly env: Environment; hex(digits: number): string },
): InitChoices {
  const model = modelOf(flags, env)
  if (model === 'demo' && (flags.key !== undefined || flags.baseUrl !== undefined))
    throw invalid('model', 'the demo model takes no key and no address; name the model they are for with --model')
  const provider = model === 'demo' ? undefined : providerOf(model, flags, env)
  const token = flags.token === 'auto' ? hex(TOKEN_DIGITS) : flags.token
  return {
    model,
    ...(provider === undefined ? {} : { provider }),
    ...(token === undefined || token === 'none' ? {} : { token }),
    ...(flags.xiaoyi === undefined ? {} : { xiaoyi: xiaoyiOf(flags.xiaoyi) }),
  }
}

/** A provider whose key is in the environment is a better guess than the demo model. */
export function suggestedModel(env: Environment): string {
  for (const name of providersInEnvironment(env)) {
    const [first] = catalogueIds(name)
    if (first !== undefined) return `${name}/${first}`
  }
  return 'demo'
}

function modelOf({ model }: InitFlags, env: Environment): string {
  if (model === undefined || model === '') return suggestedModel(env)
  if (model === 'demo' || model.includes('/')) return model
  const [first] = catalogueIds(model)
  if (first !== undefined) return `${model}/${first}`
  throw invalid('model', `"${model}" names no model; write "<provider>/<model id>" or "demo"`)
}

function providerOf(model: string, { key, baseUrl }: InitFlags, env: Environment): InitChoices['provider'] {
  const name = model.slice(0, model.indexOf('/'))
  const known = knownProvider(name)
  if (known === undefined && baseUrl === undefined)
    throw invalid('base-url', `"${name}" is no known provider; give its address with --base-url`)
  // A key of the environment goes to the provider's own address only.
  const apiKey = key ?? (baseUrl === undefined ? variableOf(known?.keyVariable, env) : undefined)
  if (apiKey === undefined && baseUrl === undefined && known?.keyless !== true)
    throw invalid('key', `${name} needs a key: give --key, for example --key '$${known?.keyVariable ?? 'API_KEY'}'`)
  return {
    name,
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(baseUrl === undefined ? {} : { baseUrl }),
    ...(known === undefined ? { isCompatible: true } : {}),
  }
}

/** Whether the key of a model has to be asked for. */
export function needsKey(model: string, env: Environment): boolean {
  const known = knownProvider(model.slice(0, Math.max(0, model.indexOf('/'))))
  return known !== undefined && known.keyless !== true && variableOf(known.keyVariable, env) === undefined
}

function variableOf(variable: string | undefined, env: Environment): string | undefined {
  return variable !== undefined && (env[variable] ?? '') !== '' ? `$${variable}` : undefined
}

function xiaoyiOf(text: string): NonNullable<InitChoices['xiaoyi']> {
  const [ak = '', sk = '', agentId = '', ...more] = text.split(',').map((part) => part.trim())
  if (ak === '' || sk === '' || agentId === '' || more.length > 0)
    throw invalid('xiaoyi', '--xiaoyi takes three texts with commas between them: AK,SK,AGENT')
  return { ak, sk, agentId }
}

function invalid(field: string, message: string): GatewayError {
  return new GatewayError('FIELD_INVALID', message, { field })
}
