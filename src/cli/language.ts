import { LANGUAGE_SETTINGS, languageOfLocale, type LanguageChoice } from '../core/language.ts'
import { apiOf, type RunningGateway } from './connect.ts'

/** As the running gateway is configured; by this terminal's locale where it does not say. */
export async function languageOf(running: RunningGateway | undefined): Promise<LanguageChoice> {
  const locale = languageOfLocale(process.env)
  // A gateway that cannot be asked now is asked for the rest in a moment, and that failure is reported.
  const status = await (running === undefined
    ? undefined
    : apiOf(running)
        .get('/api/status')
        .catch(() => undefined))
  const setting = LANGUAGE_SETTINGS.find((known) => known === status?.['language']) ?? 'auto'
  return { setting, locale }
}
