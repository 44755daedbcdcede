import { NEVER } from '../base/async.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import { chooseLanguage, languageOfText, type LanguageChoice } from '../core/language.ts'
import { phrasesIn } from '../core/phrases/phrases-in.ts'
import type { CommandName, Phrases } from '../core/phrases/phrases.ts'
import { latestWords } from '../history/latest-words.ts'
import type { AcceptedMessage } from '../core/inbound.ts'
import { usdOf, type Spent } from '../core/spent.ts'
import { sizeOfHistory } from '../history/request-record.ts'
import type { Providers } from '../provider/registry.ts'
import type { Storage } from '../storage/storage.ts'
import type { Approvals } from './approvals.ts'
import { choose, settingsOf } from './chosen-settings.ts'
import type { CommandAnswers, SessionActivity } from './command-answers.ts'
import { parseSlash } from './commands.ts'
import type { AgentDeps } from './converse.ts'

export interface SessionCommandDeps {
  readonly storage: Storage
  providers(): Providers
  readonly approvals: Approvals
  readonly modelsFor: AgentDeps['modelsFor']
  queueMode(): string
  language(): LanguageChoice
}

/** The slash commands that read or change the record of their session. */
export function createSessionCommands(deps: SessionCommandDeps): CommandAnswers {
  return {
    phrases: (message) => phrasesFor(message, deps),
    status: (message, activity) => describeSession(message, activity, deps),
    model: (message, name) => changeModel(message, name, deps),
    approve: async (message, id, approve) =>
      deps.approvals.answer(message.key, id, approve, await phrasesFor(message, deps)),
  }
}

async function describeSession(
  message: AcceptedMessage,
  { running, queued }: SessionActivity,
  deps: SessionCommandDeps,
): Promise<string> {
  const model = deps.modelsFor(await settingsOf(deps.storage, message.key))[0].name
  const record = await deps.storage.sessions.get(message.key)
  const phrases = await phrasesFor(message, deps)
  return [
    phrases.statusSession(message.key),
    phrases.statusModel(model),
    phrases.statusRunning(running !== null),
    phrases.statusQueue(queued, deps.queueMode()),
    ...(record === undefined ? [] : spentLines(await deps.storage.usage.ofSession(record.sessionId), phrases)),
    ...(record === undefined ? [] : await describeContext(record.sessionId, phrases, deps)),
  ].join('\n')
}

async function describeContext(
  sessionId: SessionId,
  phrases: Phrases,
  { storage }: SessionCommandDeps,
): Promise<readonly string[]> {
  const transcript = await storage.transcripts.open(sessionId, NEVER)
  try {
    const { messages, tokens } = sizeOfHistory((await transcript.context()).entries)
    const totals = await storage.usage.savedBy(sessionId)
    const hasCleaned = totals.steps !== 0 || totals.netTokensSaved !== 0
    return [phrases.statusContext(tokens, messages), ...(hasCleaned ? [phrases.statusCleanup(totals)] : [])]
  } finally {
    await transcript.close()
  }
}

/** What stands behind these are names and ids, which are of no language. */
const TAKES_NAMES: readonly CommandName[] = ['model', 'approve', 'deny']

/** By the words behind the command, then by what the user said last, then by the locale. */
async function phrasesFor(
  { key, text }: AcceptedMessage,
  { language: languageNow, storage }: SessionCommandDeps,
): Promise<Phrases> {
  const language = languageNow()
  const slash = parseSlash(text)
  const rest = slash.kind === 'command' && !TAKES_NAMES.includes(slash.name) ? slash.rest : undefined
  if (language.setting !== 'auto' || (rest !== undefined && languageOfText(rest) !== undefined))
    return phrasesIn(chooseLanguage(language, rest))
  const { sessions, transcripts } = storage
  const record = await sessions.get(key)
  if (record === undefined || !(await transcripts.exists(record.sessionId))) return phrasesIn(chooseLanguage(language))
  const transcript = await transcripts.open(record.sessionId, NEVER)
  try {
    return phrasesIn(chooseLanguage(language, latestWords((await transcript.context()).entries)))
  } finally {
    await transcript.close()
  }
}

/** What the conversation has used in all. */
function spentLines(spent: Spent, phrases: Phrases): readonly string[] {
  return spent.requests === 0 ? [] : [phrases.statusTokens(spent), phrases.statusCost(usdOf(spent), spent.unpriced)]
}

/** Durable, per session, and stronger than the configuration until `/model default`. */
async function changeModel(message: AcceptedMessage, name: string, deps: SessionCommandDeps): Promise<string> {
  const { storage, modelsFor } = deps
  const providers = deps.providers()
  const { key } = message
  const phrases = await phrasesFor(message, deps)
  if (name === '') {
    const known = providers.list()
    const listed = new Set(known.map(({ provider }) => provider))
    const others = [...providers.names()].filter((provider) => !listed.has(provider))
    return [
      phrases.usesModel(modelsFor(await settingsOf(storage, key))[0].name),
      ...(known.length === 0 ? [] : [phrases.knownModels(known.map(({ ref }) => ref).join(', '))]),
      ...(others.length === 0 ? [] : [phrases.otherProviders(others.join(', '))]),
    ].join('\n')
  }
  const isDefault = name.toLowerCase() === 'default'
  const resolved = isDefault ? undefined : resolve(providers, name)
  if (resolved instanceof GatewayError) return resolved.message
  const [provider = '', ...model] = resolved?.ref.split('/') ?? []
  const settings = resolved === undefined ? {} : { providerOverride: provider, modelOverride: model.join('/') }
  await choose(storage, key, settings)
  return resolved === undefined ? phrases.usesConfiguredModel() : phrases.nowUsesModel(resolved.ref)
}

function resolve(providers: Providers, name: string): ReturnType<Providers['resolve']> | GatewayError {
  try {
    return providers.resolve(name)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}
