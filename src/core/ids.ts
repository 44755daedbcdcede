declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

/** `webhook:msg-1`, `agent:main:webhook:dm:ann` …: what a person calls a conversation. Stable across resets. */
export type SessionKey = Branded<'SessionKey'>
/** `sess_…`: one transcript. A reset gives the key a new one. */
export type SessionId = Branded<'SessionId'>
/** A line of the transcript. */
export type EntryId = Branded<'EntryId'>
/** One accepted user message, from its acceptance to the end of its reply; also the id of its step. */
export type RunId = Branded<'RunId'>

/** Other programs write transcripts too, with ids of their own form. */
export const isEntryId = (value: unknown): value is EntryId => typeof value === 'string'
