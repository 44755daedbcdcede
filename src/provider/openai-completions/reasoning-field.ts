/**
 * Where compatible servers put reasoning. The name is kept as the block's signature (pi does the same), so that the
 * reasoning goes back in the field it came from.
 */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const

export type ReasoningField = (typeof REASONING_FIELDS)[number]

export function isReasoningField(name: string | undefined): name is ReasoningField {
  return REASONING_FIELDS.some((field) => field === name)
}
