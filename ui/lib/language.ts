import { computed, signal } from '@preact/signals'
import { en } from '../texts/en.ts'
import { unreachable } from './api.ts'
import { kept, keep } from './kept.ts'

export type Language = 'en' | 'zh'
export type Texts = typeof en

export const language = signal<Language>(document.documentElement.lang.startsWith('zh') ? 'zh' : 'en')
const chinese = signal<Texts | undefined>(undefined)

/** The texts of the chosen language; English until the Chinese ones are loaded. */
export const texts = computed<Texts>(() => (language.value === 'zh' ? (chinese.value ?? en) : en))

/** Resolves when the texts can be shown: English is always there, Chinese is a file of its own. */
export async function loadTexts(wanted: Language = language.value): Promise<void> {
  if (wanted !== 'zh' || chinese.value !== undefined) return
  const loaded = await import('../texts/zh.ts').catch(() => {
    throw unreachable()
  })
  chinese.value = loaded.zh
}

export async function chooseLanguage(chosen: Language): Promise<void> {
  await loadTexts(chosen)
  language.value = chosen
  keep('language', chosen)
  document.documentElement.lang = chosen === 'zh' ? 'zh-CN' : 'en'
}

export type Theme = 'light' | 'dark'

const prefersDark = matchMedia('(prefers-color-scheme: dark)')
const systemTheme = (): Theme => (prefersDark.matches ? 'dark' : 'light')

const chosenTheme = kept('theme')
export const theme = signal<Theme>(chosenTheme === 'light' || chosenTheme === 'dark' ? chosenTheme : systemTheme())

// The system may go dark in the evening, while the page is open.
prefersDark.addEventListener('change', () => {
  if (document.documentElement.dataset['theme'] === undefined) theme.value = systemTheme()
})

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen
  document.documentElement.dataset['theme'] = chosen
  keep('theme', chosen)
}
