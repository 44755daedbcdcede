export {
  ALL_RULES,
  ANTHROPIC_RULES,
  checkAnthropicRequest,
  checkGoogleRequest,
  checkMistralRequest,
  checkOpenAICompletionsRequest,
  checkOpenAIResponsesRequest,
  type CheckOptions,
  type CompletionsOptions,
  GOOGLE_RULES,
  type GoogleOptions,
  type IssuedValues,
  MISTRAL_RULES,
  OPENAI_COMPLETIONS_RULES,
  OPENAI_RESPONSES_RULES,
  type ProviderRule,
  type RuleApi,
  type RuleProfile,
  type RuleTable,
  type RuleViolation,
  TEMPLATE_FAMILIES,
  type TemplateFamily,
  templateFamilyOf,
} from './rules/index.ts'
export { answerOf } from './provider/answering-model.ts'
export type { CalledTool, Conversation, OfferedTool, Turn } from './provider/conversation.ts'
export type { LengthRefusalStyle } from './provider/length-refusal.ts'
export {
  isSimulatedProvider,
  runProviderSimulator,
  type RunSimulatorOptions,
  SIMULATED_PROVIDERS,
  type SimulatedProviderName,
} from './provider/run.ts'
export {
  type AnswerBlock,
  type AnswerStop,
  type AnswerUsage,
  type Delivery,
  type RefusalKind,
  type Script,
  type ScriptedAnswer,
  type ScriptedRefusal,
  type ScriptedReply,
  SIMULATED_APIS,
  type SimulatedApi,
} from './provider/script.ts'
export type { RequestOutcome, SeenRequest } from './provider/seen-request.ts'
export {
  createProviderSimulator,
  type ProviderSimulator,
  type ServedSimulator,
  type SimulatorOptions,
} from './provider/simulator.ts'
export { type PhoneControl, type PhoneEvents, VirtualPhone } from './xiaoyi/phone.ts'
export type {
  PhoneTask,
  PhoneTaskState,
  Rule as PhoneRule,
  SeenFrame,
  Violation as PhoneViolation,
} from './xiaoyi/phone-task.ts'
export { CANCEL_SHAPES, type CancelShape, CLEAR_SHAPES, type ClearShape } from './xiaoyi/requests.ts'
export {
  createXiaoyiSimulator,
  type SayOptions,
  XiaoyiSimulator,
  type XiaoyiSimulatorOptions,
} from './xiaoyi/simulator.ts'
export { REAL_SERVICE, type Switches as XiaoyiSwitches } from './xiaoyi/switches.ts'
export { runTerminalPhone, type TerminalPhoneOptions } from './xiaoyi/terminal-phone.ts'
export { openHub, type Hub, type HubLimits, type HubOptions } from './hub/hub.ts'
export type { HubRole, RoomLimits } from './hub/room.ts'
export { runHub, type RunHubOptions } from './hub/run.ts'
