/** Why an image is not sent. */
export const IMAGE_FAULTS = [
  'it belongs to an error',
  'this model does not accept images',
  'this model does not accept its format',
  'too many images in one request',
  'the images of one request are too large',
  'its data is not valid',
  'not a PNG, JPEG, GIF or WebP image',
  'it is too large',
  'its sides are too long',
  'it is empty',
] as const

export type ImageFault = (typeof IMAGE_FAULTS)[number]

/** A promise about every history that was found broken. */
export const BROKEN_INVARIANTS = [
  'empty history',
  'does not begin with a user message',
  'ends with an answer',
  'two messages of one role',
  'user message behind a result',
  'empty content',
  'more calls in one answer than allowed',
  'result without its call',
  'call without its result',
] as const

export type BrokenInvariant = (typeof BROKEN_INVARIANTS)[number]

/**
 * Why a message is sent otherwise than it is stored, in the words of the report. The page has words of its own language
 * for each; a report of another version may hold others.
 */
export const REASONS = [
  'cleaned up',
  'cleanup note',
  'hidden by an edit',
  'replaced by an edit',
  'unknown block',
  'unsupported block',
  'blank text',
  'lone surrogate',
  'lone surrogate in signed reasoning',
  'tool name',
  'another session wrote it',
  'history limit',
  'tool call without an id',
  'tool call without a name',
  'tool call that was never finished',
  'tool call without input',
  'reasoning not replayable',
  'reasoning of another model',
  'reasoning without what it led to',
  'answer without text or calls',
  'image encoding',
  '[image data removed - already processed by model]',
  ...IMAGE_FAULTS.map((fault) => `[image left out: ${fault}]` as const),
  'trim, as in an earlier request',
  'clear, as in an earlier request',
  'truncate, as in an earlier request',
  'old result trimmed',
  'old result cleared',
  'result larger than its share of the window',
  'results together larger than their share of the window',
  'missing tool result',
  'call without a result',
  'synthetic result without an open call',
  'result that repeats another',
  'result without a call becomes context',
  'results stand behind their call',
  'longer than the context window',
  'text cut to fit the context window',
  'details',
  'context of the message next to it',
  'repeated by the next message',
  'not answered yet',
  'a history begins with a user message',
  'an answer stands between a result and the next message',
  'a request ends with a user message',
  'signed reasoning stands at the start of its message',
  'two messages of one role in a row',
  'result told as text',
  'calls told as text',
  'one call per answer',
  ...BROKEN_INVARIANTS,
] as const

export type Reason = (typeof REASONS)[number]
