// Transcripts without a gateway: node examples/library/transcripts.mjs [FOLDER]
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openTranscripts } from 'clew/transcript'

const folder = process.argv[2] ?? (await mkdtemp(join(tmpdir(), 'clew-transcripts-')))
const user = (content) => ({ role: 'user', content, timestamp: Date.now() })

const transcripts = await openTranscripts(folder)
const transcript = await transcripts.open('first')
const [question] = await transcript.add(user('What is a clew?'), user('And who had one?'))
await transcript.label(question.id, 'the question')
await transcript.branchTo(question.id)
await transcript.add(user('Where does the word come from?'))

const { messages } = await transcript.context()
console.log('in view:', messages.map(({ content }) => content).join(' / '))
console.log('labels:', [...(await transcript.labels()).values()].join(', '))
let stored = 0
for await (const _ of transcript.entries()) stored++
console.log('stored entries:', stored)
await transcript.close()
console.log('conversations:', (await transcripts.list()).join(', '))
await transcripts.close()
