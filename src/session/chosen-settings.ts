import type { Change } from '../core/change.ts'
import type { SessionKey } from '../core/ids.ts'
import type { SessionRecord } from '../core/inbound.ts'
import { isRecord } from '../base/json.ts'
import type { Storage } from '../storage/storage.ts'

/** What a user can choose for a conversation, also before it begins. */
export type SessionSettings = Pick<SessionRecord, 'providerOverride' | 'modelOverride'>

/** Where they stand in the state. */
export const CHOSEN_SECTION = 'chosen'

/** The settings of a conversation: of its row, or what was chosen for it before its first message. */
export async function settingsOf(storage: Storage, key: SessionKey): Promise<SessionSettings> {
  return (await storage.sessions.get(key)) ?? (await chosenFor(storage, key))
}

/** For a conversation that has not begun. */
export async function chosenFor({ state }: Storage, key: SessionKey): Promise<SessionSettings> {
  const chosen = await state.get(CHOSEN_SECTION, key)
  if (!isRecord(chosen)) return {}
  const { providerOverride, modelOverride } = chosen
  return {
    ...(typeof providerOverride === 'string' ? { providerOverride } : {}),
    ...(typeof modelOverride === 'string' ? { modelOverride } : {}),
  }
}

/** The conversation has begun and has its settings in its row. */
export function forgetChosen(key: SessionKey): Change {
  return { kind: 'set-state', section: CHOSEN_SECTION, key, value: null }
}

/** Replaces what was chosen, in the row or, without one, for the first message to take along. Durable when it resolves. */
export async function choose(storage: Storage, key: SessionKey, settings: SessionSettings): Promise<void> {
  const removed = ['providerOverride', 'modelOverride'].filter((name) => !(name in settings))
  const begun = (await storage.sessions.get(key)) !== undefined
  await storage.transact([
    begun
      ? { kind: 'change-session', key, fields: settings, removed, touched: true }
      : {
          kind: 'set-state',
          section: CHOSEN_SECTION,
          key,
          value: Object.keys(settings).length === 0 ? null : { ...settings },
        },
  ])
}
