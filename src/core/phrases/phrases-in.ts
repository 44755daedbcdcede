import type { Language } from '../language.ts'
import { chinese } from './chinese.ts'
import { english } from './english.ts'
import type { Phrases } from './phrases.ts'

export function phrasesIn(language: Language): Phrases {
  return language === 'zh' ? chinese : english
}
