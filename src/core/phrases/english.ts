import { counted } from '../../base/text.ts'
import type { Phrases } from './phrases.ts'

export const english: Phrases = {
  commands: {
    new: 'start a new conversation; text after it is its first message',
    reset: 'the same as /new',
    stop: 'stop the current answer and discard queued messages',
    status: 'what runs, which model answers, how large the context is, what cleanups saved',
    model: 'show or change the model of this conversation: /model provider/name, /model default',
    compact: 'summarise the older part of the conversation now; /compact undo takes the latest summary back',
    cleanup: 'hide the working steps of finished tasks from the model',
    restore: 'undo the latest cleanup',
    retry: 'ask your latest message again; the old answer stays a version of the conversation',
    edit: 'ask your latest message again in other words: /edit text; an earlier one: /edit #2 text',
    branch: 'list the versions that /retry and /edit made; /branch 2 goes on with the second',
    approve: 'let a tool call that waits for you run: /approve, or /approve id when several wait',
    deny: 'the opposite of /approve',
    help: 'this list',
  },
  unknownCommand: (word, nearest) => {
    const guess = nearest === undefined ? '' : ` Did you mean /${nearest}?`
    return `There is no command /${word}.${guess} /help lists them; //${word} sends the text as it is.`
  },
  newConversation: () => 'Started a new conversation.',
  stopped: (messages) =>
    messages === 0 ? 'Nothing is running.' : `Stopped ${messages} ${messages === 1 ? 'message' : 'messages'}.`,
  usesModel: (name) => `This conversation uses ${name}.`,
  knownModels: (names) => `Known models: ${names}`,
  otherProviders: (names) => `Also any model of: ${names}`,
  nowUsesModel: (name) => `This conversation now uses ${name}.`,
  usesConfiguredModel: () => 'This conversation uses the configured model again.',
  statusSession: (key) => `session ${key}`,
  statusModel: (name) => `model ${name}`,
  statusRunning: (isRunning) => (isRunning ? 'an answer is being worked on' : 'nothing runs'),
  statusQueue: (waiting, mode) =>
    waiting === 0 ? `queue empty (mode: ${mode})` : `${waiting} waiting (mode: ${mode})`,
  statusTokens: ({ requests, input, output, cacheRead, cacheWrite }) =>
    `${counted(requests, 'request')}: ${input + cacheRead + cacheWrite} tokens in (${cacheRead} from the cache), ${output} out`,
  statusCost: (usd, unpriced) => {
    if (usd === null) return 'cost unknown: the model has no price'
    return `cost $${usd.toFixed(4)}${unpriced === 0 ? '' : ` and ${counted(unpriced, 'request')} without a known price`}`
  },
  statusContext: (tokens, messages) =>
    `context about ${counted(tokens, 'token')} in ${counted(messages, 'message')} (estimated)`,
  statusCleanup: ({ steps, messages, tokensSaved, netTokensSaved, netBasis }) =>
    `cleaned up ${counted(messages, 'message')} of ${counted(steps, 'step')}, ${counted(tokensSaved, 'token')} saved; net of cache effects ${netTokensSaved} so far (${netBasis})`,
  cleaned: (messages, steps, tokens) =>
    `Cleaned ${counted(messages, 'message')} of ${counted(steps, 'step')}; saved about ${counted(tokens, 'token')}. /restore brings the latest back.`,
  nothingToClean: () => 'There is nothing to clean up.',
  restored: (asked) => `The working steps of “${asked}” are in view again.`,
  nothingToAskAgain: () => 'There is no such message of yours to ask again.',
  editUsage: () => 'Write what to ask instead: /edit text, or /edit #2 text for your second message.',
  versions: (count) => `This conversation has ${count} versions; /branch and a number goes on with one:`,
  oneVersion: () => 'This conversation has one version. /retry and /edit make others.',
  noSuchVersion: (count) => `There is no such version; /branch lists them (1 to ${count}).`,
  switchedTo: (number, words) => `This is version ${number} now. Your latest words in it: ${words}`,
  nothingToRestore: () => 'There is no cleanup to undo.',
  decided: (tool, isApproved) => `${isApproved ? 'Approved' : 'Denied'}: ${tool}.`,
  nothingToApprove: (id) => (id === '' ? 'Nothing waits for approval.' : `Nothing waits under the id ${id}.`),
  severalToApprove: (calls) => [`${calls.length} calls wait; name one:`, ...calls].join('\n'),
  compactUsage: () => 'Usage: /compact, or /compact undo.',
  tooShort: () => 'The conversation is too short to be summarised.',
  notSummarised: (reason) => `The conversation was not summarised: ${reason}.`,
  summarised: (before, after) =>
    `The older part is now a summary: about ${before} tokens became ${after}. /compact undo takes it back.`,
  noSummary: () => 'There is no summary to take back.',
  summaryTakenBack: (before, after) =>
    `The latest summary is taken back; what it stood for is in view again: about ${after} tokens instead of ${before}.`,
}
