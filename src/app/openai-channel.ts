import { FetchRefused } from '../base/fetch-policy.ts'
import { guardedFetch } from '../base/guarded-fetch.ts'
import { OpenAiChannel, type ModelNames } from '../channel/openai/channel.ts'
import type { PlaceDeps } from '../channel/openai/place-request.ts'
import type { MessageFiles } from '../channel/files/message-files.ts'
import type { ConversationFinder } from '../channel/openai/finder.ts'
import type { Config } from '../config/config.ts'
import { GatewayError } from '../core/errors.ts'
import { untakenSampling, type SamplingName } from '../provider/sampling.ts'
import type { LiveAgent } from './agent.ts'
import type { Platform } from './platform.ts'
import { senderLimits } from './channels.ts'

export interface OpenAiChannelDeps {
  readonly config: Config
  readonly agent: LiveAgent
  readonly files: MessageFiles
  readonly finder: ConversationFinder
}

/** The name of the configured model, whichever it is. */
const CONFIGURED = 'clew'

/** The channel for clients of OpenAI's API; its routes come from `serve.ts`. */
export function createOpenAiChannel(
  platform: Platform,
  { config, agent, files, finder }: OpenAiChannelDeps,
): OpenAiChannel {
  const { clock, ids, log } = platform
  const { limits } = config
  return new OpenAiChannel({
    clock,
    ids,
    log,
    rates: senderLimits(limits),
    replyBufferBytes: limits.reply_buffer_bytes,
    requestLimits: { messages: limits.openai_messages, tools: limits.openai_tools },
    files,
    finder,
    models: createModelNames(agent),
    fetchFile: createFetchFile(platform, limits.file_bytes),
  })
}

/** Asked anew for every request: the configuration may be read again meanwhile. */
function createModelNames(agent: LiveAgent): ModelNames {
  return {
    list: () => [
      ...new Set([
        CONFIGURED,
        ...agent.current.modelsFor({}).map(({ name }) => name),
        ...agent.current.providers.list().map(({ ref }) => ref),
      ]),
    ],
    resolve({ api, model, sampling }) {
      const chosen =
        model === CONFIGURED
          ? agent.current.modelsFor({})[0]
          : resolveNamed(model, (name) => agent.current.resolveModel(name))
      const untaken = untakenSampling(chosen.provider.api, sampling)
      if (untaken === undefined) return model === CONFIGURED ? undefined : chosen.name
      const field = parameterOf(untaken, api)
      throw new GatewayError('FIELD_INVALID', `${chosen.name} does not take '${field}'`, { field })
    },
  }
}

function resolveNamed<T>(model: string, resolve: (name: string) => T): T {
  try {
    return resolve(model)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'MODEL_UNKNOWN') throw error
    throw new GatewayError('MODEL_UNKNOWN', `${error.message}; 'clew' is the configured model`, { field: 'model' })
  }
}

function parameterOf(name: SamplingName, api: 'chat' | 'responses'): string {
  const names: Readonly<Record<SamplingName, string>> = {
    maxOutputTokens: api === 'chat' ? 'max_tokens' : 'max_output_tokens',
    temperature: 'temperature',
    topP: 'top_p',
    stop: 'stop',
    format: api === 'chat' ? 'response_format' : 'text.format',
  }
  return names[name]
}

const FETCH_TIMEOUT_MS = 15_000

function createFetchFile({ http, clock }: Platform, maxBytes: number): PlaceDeps['fetchFile'] {
  return async (url, signal) => {
    try {
      const { bytes, mediaType, status } = await guardedFetch(
        http,
        url,
        { clock, maxBytes, timeoutMs: FETCH_TIMEOUT_MS },
        signal,
      )
      if (status < 200 || status > 299) throw new FetchRefused('status', `the server answered ${status}`)
      return { name: 'image', mimeType: mediaType, data: bytes }
    } catch (error) {
      signal.throwIfAborted()
      const why = error instanceof FetchRefused ? error.message : 'the request failed'
      throw new GatewayError('FIELD_INVALID', `an image could not be fetched: ${why}`, { field: 'image_url' })
    }
  }
}
