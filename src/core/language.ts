/** The languages the program itself speaks. */
export type Language = 'en' | 'zh'

/** `auto` follows the user's message, then the conversation, then the locale. */
export const LANGUAGE_SETTINGS = ['en', 'zh', 'auto'] as const
export type LanguageSetting = (typeof LANGUAGE_SETTINGS)[number]

export interface LanguageChoice {
  readonly setting: LanguageSetting
  /** Where nothing tells more. */
  readonly locale: Language
}

/** The first text that tells decides. */
export function chooseLanguage(
  { setting, locale }: LanguageChoice,
  ...texts: readonly (string | undefined)[]
): Language {
  if (setting !== 'auto') return setting
  for (const text of texts) {
    const language = text === undefined ? undefined : languageOfText(text)
    if (language !== undefined) return language
  }
  return locale
}

/** Undefined for numbers, marks and the like. */
export function languageOfText(text: string): Language | undefined {
  if (/\p{Script=Han}/u.test(text)) return 'zh'
  return /\p{Letter}/u.test(text) ? 'en' : undefined
}

/** As POSIX has it: the first of these that is set counts. */
export function languageOfLocale(env: Readonly<Record<string, string | undefined>>): Language {
  const locale = [env['LC_ALL'], env['LC_MESSAGES'], env['LANG']].find((value) => (value ?? '') !== '') ?? ''
  return /^zh(?:$|[_.-])/iu.test(locale) ? 'zh' : 'en'
}
