import { GatewayError } from '../core/errors.ts'
import { textOf, type Usage } from '../core/message.ts'
import type { SummaryPrompt } from '../history/summary-prompt.ts'
import type { TurnModel, TurnDeps } from './deps.ts'

/** One question to a model outside the conversation, without tools. What it costs is added to `paid`. */
export async function askForText(
  model: TurnModel,
  prompt: SummaryPrompt,
  maxTokens: number,
  paid: Usage[],
  deps: Pick<TurnDeps, 'spending' | 'clock' | 'forms'>,
  signal: AbortSignal,
): Promise<string> {
  await deps.spending.check()
  const encoded = model.provider.encode({
    model: model.model,
    system: prompt.system,
    messages: [{ role: 'user', content: prompt.user, timestamp: deps.clock.now() }],
    tools: [],
    plainTurns: deps.forms.formFor(model) !== 'normal',
    maxOutputTokens: Math.min(maxTokens, model.maxOutputTokens),
    thinkingLevel: 'off',
  })
  for await (const event of model.provider.stream(encoded, signal)) {
    if (event.type !== 'end') continue
    paid.push(event.message.usage)
    return textOf(event.message.content)
  }
  throw new GatewayError('MODEL_FAILED', 'the model ended its summary without finishing it')
}
