import { ANTHROPIC_RULES } from './anthropic-rules.ts'
import { GOOGLE_RULES } from './google-rules.ts'
import { MISTRAL_RULES } from './mistral-rules.ts'
import { OPENAI_COMPLETIONS_RULES, OPENAI_RESPONSES_RULES } from './openai-rules.ts'
import type { RuleTable } from './rule.ts'

/** Every table under the prefix its violations carry. */
export const ALL_RULES = {
  anthropic: ANTHROPIC_RULES,
  'openai-responses': OPENAI_RESPONSES_RULES,
  'openai-completions': OPENAI_COMPLETIONS_RULES,
  google: GOOGLE_RULES,
  mistral: MISTRAL_RULES,
} as const satisfies Readonly<Record<string, RuleTable>>

/** The APIs that have rules. */
export type RuleApi = keyof typeof ALL_RULES
