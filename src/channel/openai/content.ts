import { isRecord } from '../../base/json.ts'
import { invalid, optionalText, requiredObject, requiredText, type Fields } from './fields.ts'
import { digestOfContent, type SentFile, type SentMessage } from './sent-message.ts'

interface Content {
  readonly text: string
  readonly files: readonly SentFile[]
}

/** Text as a string or as parts; a text in several parts is one text with line breaks. */
export function decodeUser(value: unknown, param: string): Extract<SentMessage, { role: 'user' }> {
  const { text, files } = decodeContent(value, param)
  return { role: 'user', text, files, digest: digestOfContent(text, files) }
}

/** Content that can only be text. */
export function decodeWords(value: unknown, param: string): string {
  if (value === undefined || value === null) return ''
  const { text, files } = decodeContent(value, param)
  if (files.length > 0) throw invalid(param, `'${param}' can hold text only`)
  return text
}

function decodeContent(value: unknown, param: string): Content {
  if (typeof value === 'string') return { text: value, files: [] }
  if (!Array.isArray(value)) throw invalid(param, `'${param}' must be a string or a list of parts`)
  const texts: string[] = []
  const files: SentFile[] = []
  for (const [index, part] of value.entries()) {
    const place = `${param}[${index}]`
    const decoded = decodePart(requiredObject(part, place), place)
    if (typeof decoded === 'string') texts.push(decoded)
    else files.push(decoded)
  }
  return { text: texts.join('\n'), files }
}

function decodePart(part: Fields, param: string): string | SentFile {
  const type = requiredText(part, 'type', `${param}.type`)
  switch (type) {
    case 'text':
    case 'input_text':
    case 'output_text':
      return optionalText(part, 'text', `${param}.text`) ?? ''
    case 'refusal':
      return optionalText(part, 'refusal', `${param}.refusal`) ?? ''
    case 'image_url':
    case 'input_image': {
      const { image_url: image } = part
      const url = isRecord(image) ? image['url'] : image
      if (typeof url !== 'string') throw invalid(`${param}.image_url`, `'${param}.image_url' must be an address`)
      return decodeAddress(url, 'image', `${param}.image_url`)
    }
    case 'file':
    case 'input_file': {
      const file = type === 'file' ? requiredObject(part['file'], `${param}.file`) : part
      const name = optionalText(file, 'filename', `${param}.filename`) ?? 'file'
      return decodeAddress(requiredText(file, 'file_data', `${param}.file_data`), name, `${param}.file_data`)
    }
    default:
      throw invalid(`${param}.type`, `parts of type '${type.slice(0, 40)}' are not supported here`)
  }
}

const DATA = 'data:'
const BASE64 = ';base64,'
/** As Buffer reads it, without what it would pass over in silence. */
const BASE64_TEXT = /^[A-Za-z0-9+/_-]*={0,2}$/u

function decodeAddress(url: string, name: string, param: string): SentFile {
  if (/^https?:\/\//iu.test(url)) return { url }
  const comma = url.indexOf(',')
  const head = url.slice(0, comma + 1)
  if (!head.startsWith(DATA) || !head.endsWith(BASE64) || !BASE64_TEXT.test(url.slice(comma + 1)))
    throw invalid(param, `'${param}' must be a web address or data:TYPE;base64,…`)
  const mimeType = head.slice(DATA.length, -BASE64.length).split(';', 1)[0] ?? ''
  return { name, mimeType, data: Buffer.from(url.slice(comma + 1), 'base64') }
}
