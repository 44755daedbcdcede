import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { TRANSCRIPT_POLICIES } from '../../src/core/history-rules.ts'
import type { Message } from '../../src/core/message.ts'
import { openTranscripts } from '../../src/index.ts'
import { say } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'

/** Document 004, “Session run-time”: the manager, the prompt and the tables. */
const openWorld = worldsOfThisFile()
const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true })
})

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'clew-manager-'))
  folders.push(folder)
  return folder
}

const user = (text: string): Message => ({ role: 'user', content: text, timestamp: 1 })

describe('004: the manager', () => {
  it('L48, L52: opens a file as a tree: entries, branch, context, append, branch to an entry, new root', async () => {
    const transcripts = await openTranscripts(await newFolder())
    const transcript = await transcripts.open('s')
    const [first] = await transcript.add(user('one'))
    const [second] = await transcript.add(user('two'))
    expect(transcript.leafId).toBe(second?.id)
    expect((await transcript.branch()).map(({ id }) => id)).toEqual([first?.id, second?.id])
    expect((await transcript.context()).messages).toMatchObject([user('one'), user('two')])
    await transcript.branchTo(first?.id ?? null)
    const [third] = await transcript.add(user('three'))
    expect((await transcript.context()).messages).toMatchObject([user('one'), user('three')])
    await transcript.branchTo(null)
    await transcript.add(user('four'))
    expect((await transcript.context()).messages).toMatchObject([user('four')])
    const all: string[] = []
    for await (const { type, id } of transcript.entries()) if (type === 'message') all.push(id)
    expect(all).toEqual([first?.id, second?.id, third?.id, expect.any(String)])
    await transcripts.close()
  })

  it('L34: a damaged line is taken out, the file before it kept as .bak-pid-time', async () => {
    const folder = await newFolder()
    const before = await openTranscripts(folder)
    await (await before.open('s')).add(user('one'), user('two'))
    await before.close()
    const file = join(folder, 's.jsonl')
    const lines = (await readFile(file, 'utf8')).split('\n')
    await writeFile(file, [lines[0], '{"type":"message","id', ...lines.slice(1)].join('\n'))
    const damaged = await readFile(file)
    const after = await openTranscripts(folder)
    const transcript = await after.open('s')
    expect(transcript.repairs).toMatchObject([{ kind: 'corrupt', line: 2 }])
    await transcript.add(user('three'))
    expect((await transcript.context()).messages).toMatchObject([user('one'), user('two'), user('three')])
    await after.close()
    const backup = (await readdir(folder)).find((name) => name.includes('.bak-'))
    expect(backup).toMatch(new RegExp(`^s\\.jsonl\\.bak-${process.pid}-\\d+$`, 'u'))
    expect(await readFile(join(folder, backup ?? ''))).toEqual(damaged)
  })
})

describe('004: the prompt', () => {
  it('L123: what before_agent_start returns stands in front of the prompt, with an empty line between', async () => {
    const prompts: string[] = []
    const world = await openWorld({
      models: ['anthropic'],
      hooks: [
        {
          source: 'test',
          hooks: {
            before_agent_start: ({ prompt }) => {
              prompts.push(prompt)
              return { prependContext: 'CTX' }
            },
          },
        },
      ],
    })
    await say(await world.connect(), 'the prompt')
    expect(prompts).toEqual(['the prompt'])
    expect(world.requests[0]?.bodyText).toContain('CTX\\n\\nthe prompt')
  })

  it('L150: system, cleaned history, then the prompt', async () => {
    const world = await openWorld({ models: ['anthropic'], config: { agent: { system_prompt: 'Be brief.' } } })
    const client = await world.connect()
    await say(client, 'first')
    await say(client, 'second')
    const { conversation } = world.requests.at(-1) ?? {}
    expect(conversation?.system).toContain('Be brief.')
    expect(conversation?.turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(conversation?.turns.at(-1)).toMatchObject({ text: 'second' })
    expect(world.violations()).toEqual([])
  })
})

describe('004: L161, the policy', () => {
  // Where a cell differs from the document's, docs/maintainers/transcript-policy.md says so and why.
  it.each([
    ['anthropic', { sanitizeToolCallIds: true, applyGoogleTurnOrdering: false, validateTurns: 'anthropic' }],
    ['google', { sanitizeToolCallIds: true, applyGoogleTurnOrdering: true, validateTurns: 'gemini' }],
    ['openai-responses', { sanitizeToolCallIds: true, applyGoogleTurnOrdering: false }],
    ['mistral', { sanitizeToolCallIds: true, applyGoogleTurnOrdering: false, toolCallIdMode: 'strict9' }],
  ])('%s', (row, expected) => {
    const policy = Object.values(TRANSCRIPT_POLICIES).find((each) => each.row === row)
    expect(policy).toMatchObject({
      ...expected,
      sanitizeMode: 'full',
      repairToolUseResultPairing: true,
      allowSyntheticToolResults: true,
    })
  })
})
