import type { Config } from '../../config/config.ts'
import type { ErrorCode } from '../../core/errors.ts'
import { modelInfo } from '../../provider/catalogue.ts'
import { toProviderSettings } from '../agent.ts'
import type { Platform } from '../platform.ts'
import { tryModel } from '../provider-test.ts'
import { ok, problem, warning, type DoctorCheck } from './check.ts'
import type { DoctorWords } from './words.ts'

/** Each configured model is asked one small question. */
export async function checkModels(
  platform: Platform,
  { config, learned }: { readonly config: Config; readonly learned: readonly string[] },
  words: DoctorWords,
  signal: () => AbortSignal,
): Promise<readonly DoctorCheck[]> {
  return Promise.all(config.model.map((ref) => checkModel(platform, { ref, config, learned }, words, signal())))
}

async function checkModel(
  platform: Platform,
  { ref, config, learned }: { readonly ref: string; readonly config: Config; readonly learned: readonly string[] },
  words: DoctorWords,
  signal: AbortSignal,
): Promise<DoctorCheck> {
  const label = `model ${ref}`
  if (ref === 'demo' || ref.startsWith('demo/')) return ok(label, words.modelOffline)
  const slash = ref.indexOf('/')
  const [name, model] = [ref.slice(0, slash), ref.slice(slash + 1)]
  const settings = Object.hasOwn(config.providers, name) ? config.providers[name] : undefined
  if (settings === undefined) return ok(label, words.modelOfPlugin)
  const outcome = await tryModel({ name, settings, model }, platform, signal)
  if (!outcome.ok) return problem(label, words.modelFails(outcome.code, outcome.error), remedyOf(outcome.code, words))
  const info = modelInfo(model, toProviderSettings(settings).models?.[model])
  return info.windowSource === 'guess' && !learned.includes(ref)
    ? warning(label, words.windowGuessed(info.contextWindow), words.windowFix(name, model))
    : ok(label, words.modelFine(outcome.firstByteMs))
}

function remedyOf(code: ErrorCode, words: DoctorWords): string {
  if (code === 'MODEL_AUTH') return words.checkKey
  return code === 'MODEL_NETWORK' || code === 'MODEL_TIMEOUT' ? words.checkNetwork : words.checkModel
}
