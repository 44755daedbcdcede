import { isRecord } from '../base/json.ts'
import type { SessionRecord } from './inbound.ts'
import { optionalNumber, optionalText, withRules, type Fields, type Rule } from './sound-message.ts'

/**
 * A row as any program or operator may have written it, with fields of the types we read; the same object when nothing had
 * to change. Undefined without a session or a time.
 */
export function soundSessionRecord(value: unknown): SessionRecord | undefined {
  if (!isRecord(value) || typeof value['sessionId'] !== 'string' || value['sessionId'] === '') return undefined
  if (!Number.isFinite(value['updatedAt'])) return undefined
  return soundSessionFields(value) as SessionRecord
}

/** The same of some fields of a row. */
export function soundSessionFields(fields: Fields): Fields {
  return withRules(fields, ROW_RULES)
}

/** Some programs write ids as numbers. */
const nameGiven: Rule = (value) => (typeof value === 'number' ? String(value) : optionalText(value))

/** What a list shows of a conversation, the present one or an archived one. */
const SHOWN_RULES: Readonly<Record<string, Rule>> = {
  title: optionalText,
  preview: optionalText,
  messages: optionalNumber,
  contextTokens: optionalNumber,
}

const ROW_RULES: Readonly<Record<string, Rule>> = {
  deliveryContext: (value) =>
    isRecord(value) && typeof value['channel'] === 'string'
      ? withRules(value, { to: nameGiven, accountId: nameGiven, threadId: nameGiven })
      : undefined,
  archived: (value) => {
    if (!Array.isArray(value)) return undefined
    const sound = value.filter(isArchived).map((one) => withRules(one, SHOWN_RULES))
    return sound.length === value.length && sound.every((one, at) => one === value[at]) ? value : sound
  },
  lastChannel: nameGiven,
  lastTo: nameGiven,
  owner: nameGiven,
  lastAccountId: nameGiven,
  lastThreadId: nameGiven,
  webhookMessageId: nameGiven,
  webhookSessionId: nameGiven,
  providerOverride: nameGiven,
  modelOverride: nameGiven,
  ...SHOWN_RULES,
}

function isArchived(value: unknown): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && typeof value['sessionId'] === 'string' && typeof value['at'] === 'number'
}
