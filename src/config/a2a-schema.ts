import { z } from 'zod'
import { address, count, flag, milliseconds, section, secret, text } from './fields.ts'

const SKILL = {
  id: 'chat',
  name: 'Chat',
  description: 'Answers questions and works on tasks in a conversation that goes on.',
  tags: ['chat'],
}

const skill = z.strictObject({
  id: text('Its name for programs.'),
  name: text('Its name for people.'),
  description: text('What it is good for; other agents choose by it.'),
  tags: z.array(z.string().min(1)).default([]).meta({ description: 'Words it is found by.' }),
  examples: z.array(z.string().min(1)).default([]).meta({ description: 'What one could ask.' }),
})

const agent = z.strictObject({
  url: address('Its address; its card is looked for at the well-known place below it.', ['http', 'https']),
  token: secret('Sent to it as a bearer token.').optional(),
  description: text('How it is described to the model.').optional(),
  private: flag('Whether it may be on this machine or network.', false),
})

/** The door for other agents, and the agents we may call. */
export function a2aSection(defaults: {
  readonly name: string
  readonly description: string
  readonly timeout_ms: number
  readonly answer_chars: number
}) {
  return section('Other agents: the A2A protocol, both ways.', {
    enabled: z
      .boolean()
      .optional()
      .meta({ description: 'Whether other agents can connect. Default: true while Clew listens on loopback.' }),
    public_url: address('Where other agents reach Clew, for the card; else the address they asked at.', [
      'http',
      'https',
    ]).optional(),
    name: text('The agent’s name on its card.').default(defaults.name),
    description: text('What the card says the agent does.').default(defaults.description),
    skills: z
      .array(skill)
      .default([{ ...SKILL, examples: [] }])
      .meta({ description: 'What the card offers.' }),
    extended_skills: z
      .array(skill)
      .default([])
      .meta({ description: 'Skills that only the extended card shows, to holders of a token.' }),
    agents: z
      .record(z.string().regex(/^[\w-]{1,40}$/u), agent)
      .default({})
      .meta({ description: 'Agents that ours may call with the tool "a2a", by name.' }),
    timeout_ms: milliseconds('How long a called agent may take.').default(defaults.timeout_ms),
    answer_chars: count('Characters of a called agent’s answer that the model is given.', defaults.answer_chars),
  })
}
