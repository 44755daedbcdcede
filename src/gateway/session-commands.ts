import type { Journal } from '../base/journal.ts'
import { NEVER } from '../base/never.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import type { AcceptedMessage } from '../core/inbound.ts'
import { sizeOfHistory } from '../history/request-record.ts'
import type { Providers } from '../provider/registry.ts'
import type { AgentParts } from '../session/converse.ts'
import type { CleanupLedger } from '../session/cleanup-ledger.ts'
import type { SessionDirectory } from '../session/directory.ts'
import type { SessionsFile } from '../session/sessions-file.ts'
import type { TranscriptStore } from '../transcript/store.ts'
import type { CommandParts } from './command-answers.ts'
import type { Gateway } from './gateway.ts'

export interface SessionCommandDeps {
  readonly journal: Journal
  readonly directory: SessionDirectory
  readonly sessionsFile: SessionsFile
  readonly providers: Providers
  readonly modelsFor: AgentParts['modelsFor']
  readonly transcripts: TranscriptStore
  readonly cleanups: CleanupLedger
  /** Asked when a command runs: the gateway itself needs the commands to be made. */
  gateway(): Pick<Gateway, 'sessionActivity'>
  readonly queueMode: string
}

/** The slash commands that read or change the record of their session. */
export function createSessionCommands(deps: SessionCommandDeps): CommandParts {
  return {
    status: async (message) => describeSession(message, deps),
    model: (message, name) => changeModel(message, name, deps),
  }
}

async function describeSession(message: AcceptedMessage, deps: SessionCommandDeps): Promise<string> {
  const { running, queued } = deps.gateway().sessionActivity(message.key)
  const model = deps.modelsFor(deps.directory.settingsOf(message.key))[0].name
  const record = deps.directory.get(message.key)
  return [
    `session ${message.key}`,
    `model ${model}`,
    running === null ? 'nothing runs' : 'an answer is being worked on',
    queued === 0 ? `queue empty (mode: ${deps.queueMode})` : `${queued} waiting (mode: ${deps.queueMode})`,
    ...(record === undefined ? [] : await describeContext(record.sessionId, deps)),
  ].join('\n')
}

async function describeContext(
  sessionId: SessionId,
  { transcripts, cleanups }: SessionCommandDeps,
): Promise<readonly string[]> {
  const transcript = await transcripts.open(sessionId, NEVER)
  try {
    const { messages, tokens } = sizeOfHistory((await transcript.context()).entries)
    const { steps, messages: hidden, tokensSaved, netTokensSaved, netBasis } = cleanups.ofSession(sessionId)
    return [
      `context about ${tokens} tokens in ${messages} messages (estimated)`,
      ...(steps === 0 && netTokensSaved === 0
        ? []
        : [
            `cleaned up ${hidden} messages of ${steps} steps, ${tokensSaved} tokens saved; net of cache effects ${netTokensSaved} so far (${netBasis})`,
          ]),
    ]
  } finally {
    await transcript.close()
  }
}

/** Durable, per session, and stronger than the configuration until `/model default`. */
async function changeModel(
  message: AcceptedMessage,
  name: string,
  { journal, directory, sessionsFile, providers, modelsFor }: SessionCommandDeps,
): Promise<string> {
  const { key } = message
  if (name === '') {
    const known = providers.list()
    const listed = new Set(known.map(({ provider }) => provider))
    const others = [...providers.names()].filter((provider) => !listed.has(provider))
    return [
      `This conversation uses ${modelsFor(directory.settingsOf(key))[0].name}.`,
      ...(known.length === 0 ? [] : [`Known models: ${known.map(({ ref }) => ref).join(', ')}`]),
      ...(others.length === 0 ? [] : [`Also any model of: ${others.join(', ')}`]),
    ].join('\n')
  }
  const isDefault = name.toLowerCase() === 'default'
  const resolved = isDefault ? undefined : resolve(providers, name)
  if (resolved instanceof GatewayError) return resolved.message
  const [provider = '', ...model] = resolved?.ref.split('/') ?? []
  const settings = resolved === undefined ? {} : { providerOverride: provider, modelOverride: model.join('/') }
  if (directory.get(key) === undefined) directory.choose(key, settings)
  else {
    await directory.update(journal, key, ({ providerOverride: _provider, modelOverride: _model, ...rest }) => {
      return { ...rest, ...settings }
    })
    sessionsFile.changed()
  }
  return resolved === undefined
    ? 'This conversation uses the configured model again.'
    : `This conversation now uses ${resolved.ref}.`
}

function resolve(providers: Providers, name: string): ReturnType<Providers['resolve']> | GatewayError {
  try {
    return providers.resolve(name)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}
