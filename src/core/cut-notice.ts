/** Behind an answer that the output limit cut short, for people. */
export const CUT_NOTICE = '\n\n[The answer was cut off at the model’s output limit. Say “continue” to go on.]'

/** The answer alone, for programs that learn in another way that it was cut. */
export function withoutCutNotice(text: string): string {
  return text.endsWith(CUT_NOTICE) ? text.slice(0, -CUT_NOTICE.length) : text
}
