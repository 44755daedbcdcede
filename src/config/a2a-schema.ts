import { z } from 'zod'
import { address, section, text } from './fields.ts'

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

/** The door for other agents. */
export function a2aSection(defaults: { readonly name: string; readonly description: string }) {
  return section('Other agents: the A2A protocol.', {
    enabled: z
      .boolean()
      .optional()
      .meta({ description: 'Whether other agents can connect. Unless told: while we listen on loopback.' }),
    public_url: address('Where other agents reach us, for the card; else the address they asked at.', [
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
  })
}
