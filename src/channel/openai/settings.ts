import { hasControlCharacters } from '../../core/inbound.ts'
import type { AnswerFormat, ClientTool, Sampling } from '../../core/client-turn.ts'
import {
  given,
  invalid,
  jsonObject,
  optionalNumber,
  optionalText,
  requiredObject,
  requiredText,
  type Fields,
} from './fields.ts'
import type { RequestLimits } from './request.ts'

const MAX_USER_CHARS = 256
const MAX_STOPS = 4
const NAME = /^[\w-]{1,64}$/u

export function decodeUserName(fields: Fields): string | undefined {
  const user = optionalText(fields, 'user')?.trim() ?? ''
  if (user.length > MAX_USER_CHARS) throw invalid('user', `'user' has more than ${MAX_USER_CHARS} characters`)
  if (hasControlCharacters(user)) throw invalid('user', "'user' holds a control character")
  return user === '' ? undefined : user
}

export function decodeSampling(fields: Fields, format: AnswerFormat | undefined): Sampling {
  const limit = (name: string): number | undefined =>
    optionalNumber(fields, name, { min: 1, max: 10_000_000, whole: true })
  const maxOutputTokens = limit('max_output_tokens') ?? limit('max_completion_tokens') ?? limit('max_tokens')
  const temperature = optionalNumber(fields, 'temperature', { min: 0, max: 2 })
  const topP = optionalNumber(fields, 'top_p', { min: 0, max: 1 })
  const stop = decodeStop(fields)
  return {
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(stop === undefined ? {} : { stop }),
    ...(format === undefined ? {} : { format }),
  }
}

function decodeStop(fields: Fields): readonly string[] | undefined {
  const value = given(fields, 'stop')
  if (value === undefined) return undefined
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  const texts = list.filter((one): one is string => typeof one === 'string' && one !== '')
  if (texts.length !== list.length || texts.length > MAX_STOPS)
    throw invalid('stop', `'stop' must be a string or at most ${MAX_STOPS} of them`)
  return texts.length === 0 ? undefined : texts
}

/** `schemaOf`: where the API keeps the schema. Plain text is what comes without a format. */
export function decodeFormat(
  value: Fields | undefined,
  param: string,
  schemaOf: (format: Fields) => unknown,
): AnswerFormat | undefined {
  if (value === undefined) return undefined
  switch (value['type']) {
    case 'text':
      return undefined
    case 'json_object':
      return { type: 'json' }
    case 'json_schema': {
      const about = requiredObject(schemaOf(value), `${param}.json_schema`)
      const { strict } = about
      return {
        type: 'schema',
        name: requiredText(about, 'name', `${param}.name`),
        schema: jsonObject(about['schema'] ?? {}, `${param}.schema`),
        ...(typeof strict === 'boolean' ? { strict } : {}),
      }
    }
    default:
      throw invalid(`${param}.type`, `'${param}.type' must be text, json_object or json_schema`)
  }
}

/** `functionOf`: where the API keeps name and parameters. */
export function decodeTools(
  list: readonly unknown[] | undefined,
  limits: RequestLimits,
  functionOf: (tool: Fields, param: string) => Fields,
): readonly ClientTool[] {
  if ((list?.length ?? 0) > limits.tools) throw invalid('tools', `'tools' can hold at most ${limits.tools}`)
  const tools = (list ?? []).map((value, index): ClientTool => {
    const param = `tools[${index}]`
    const tool = requiredObject(value, param)
    if (tool['type'] !== 'function') throw invalid(`${param}.type`, `only tools of type 'function' are supported here`)
    const about = functionOf(tool, param)
    const name = requiredText(about, 'name', `${param}.name`)
    if (!NAME.test(name)) throw invalid(`${param}.name`, `'${param}.name' must be letters, digits, _ and - only`)
    return {
      name,
      description: optionalText(about, 'description', `${param}.description`) ?? '',
      parameters: jsonObject(about['parameters'] ?? { type: 'object', properties: {} }, `${param}.parameters`),
    }
  })
  if (new Set(tools.map(({ name }) => name)).size < tools.length)
    throw invalid('tools', "two of the 'tools' have the same name")
  return tools
}

export interface ToolChoice {
  readonly tools: readonly ClientTool[]
  readonly toolChoice?: 'required' | { readonly name: string }
}

/** `none` means that the client's tools are not offered; ours are no business of the client. */
export function decodeToolChoice(
  fields: Fields,
  tools: readonly ClientTool[],
  nameOf: (choice: Fields) => unknown,
): ToolChoice {
  const choice = given(fields, 'tool_choice')
  if (choice === undefined || choice === 'auto') return { tools }
  if (choice === 'none') return { tools: [] }
  if (choice === 'required' && tools.length > 0) return { tools, toolChoice: 'required' }
  const name = typeof choice === 'object' && choice !== null ? nameOf(choice as Fields) : undefined
  if (typeof name === 'string' && tools.some((tool) => tool.name === name)) return { tools, toolChoice: { name } }
  throw invalid('tool_choice', "'tool_choice' must be none, auto, required or one of the functions in 'tools'")
}
