import type { GatewayError } from '../core/errors.ts'
import type { HistoryBudget } from '../history/budget.ts'
import { sizesAfterRefusal, type LengthRefusal, type SizesAfterRefusal } from '../history/overflow.ts'
import type { TurnModel, TurnDeps } from './deps.ts'

/**
 * Takes what a refusal for length says about the model to heart, for every session: the next request is prepared for
 * the sizes returned. Undefined when there is nothing smaller to try. A window the provider named is durable first.
 */
export async function learnWindow(
  error: GatewayError,
  refused: { readonly model: TurnModel; readonly budget: HistoryBudget; readonly estimate: number },
  deps: TurnDeps,
): Promise<SizesAfterRefusal | undefined> {
  const { model, budget, estimate } = refused
  const largestWindow = model.window.source === 'configuration' ? model.window.tokens : Infinity
  const isWindowTold = model.window.learned === 'told'
  const sizes = sizesAfterRefusal(refusalOf(error), budget, { estimate, isWindowTold, largestWindow })
  if (sizes?.by === 'told') {
    await deps.transcript.append([], { changes: deps.windows.told(model, sizes.contextWindow) })
  } else if (sizes?.by === 'halved') {
    deps.windows.tryHalf(model, sizes.contextWindow)
  }
  deps.log.warn('the provider found the request too long', {
    model: model.name,
    estimate,
    window: budget.contextWindow,
    ...(sizes === undefined ? { next: 'give up' } : { next: sizes.by, nextWindow: sizes.contextWindow }),
  })
  return sizes
}

function refusalOf({ facts }: GatewayError): LengthRefusal {
  const { contextWindow, promptTokens, failure } = facts
  return {
    ...(typeof contextWindow === 'number' ? { contextWindow } : {}),
    ...(typeof promptTokens === 'number' ? { promptTokens } : {}),
    ...(failure === 'too many bytes' ? { isAboutBytes: true } : {}),
  }
}
