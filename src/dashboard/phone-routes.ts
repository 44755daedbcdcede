import { isRecord, type JsonObject } from '../base/json.ts'
import { GatewayError } from '../core/errors.ts'
import { json, jsonBody, type Route } from '../gateway/http-routes.ts'

/** A phone that is part of this program, while XiaoYi is simulated. */
export interface PhoneControls {
  view(): JsonObject
  /** Returns the task's id. */
  say(text: string, files: readonly FileOfPhone[]): string
  cancel(): void
  clear(): void
}

interface FileOfPhone {
  readonly name: string
  readonly mimeType: string
  readonly data: string
}

const MAX_FILES = 16
const MAX_TEXT_CHARS = 100_000

export function createPhoneRoutes(phone: PhoneControls): readonly Route[] {
  const press = (path: RegExp, action: () => void): Route => ({
    method: 'POST',
    path,
    needs: 'admin',
    answer: async () => {
      action()
      return json({ success: true })
    },
  })
  return [
    { method: 'GET', path: /^\/api\/phone$/u, needs: 'admin', answer: async () => json(phone.view()) },
    {
      method: 'POST',
      path: /^\/api\/phone\/messages$/u,
      needs: 'admin',
      answer: async ({ request }) => {
        const { text = '', files = [] } = await jsonBody(request)
        const task = phone.say(checkText(text, files), checkFiles(files))
        return json({ success: true, task })
      },
    },
    press(/^\/api\/phone\/cancel$/u, () => phone.cancel()),
    press(/^\/api\/phone\/clear$/u, () => phone.clear()),
  ]
}

function checkText(text: unknown, files: unknown): string {
  const isEmpty = typeof text === 'string' && text.trim() === '' && Array.isArray(files) && files.length === 0
  if (typeof text === 'string' && text.length <= MAX_TEXT_CHARS && !isEmpty) return text
  throw new GatewayError('FIELD_INVALID', `text must be a text of 1 to ${MAX_TEXT_CHARS} characters`, { field: 'text' })
}

function checkFiles(files: unknown): readonly FileOfPhone[] {
  if (Array.isArray(files) && files.length <= MAX_FILES && files.every(isFile)) return files
  throw new GatewayError('FIELD_INVALID', `files must be at most ${MAX_FILES} of {name, mimeType, data in base64}`, {
    field: 'files',
  })
}

function isFile(value: unknown): value is FileOfPhone {
  return isRecord(value) && ['name', 'mimeType', 'data'].every((field) => typeof value[field] === 'string')
}
