import { expect, test } from 'vitest'
import { answerOf } from '../../../src/simulator/provider/answering-model.ts'
import type { Conversation, OfferedTool, Turn } from '../../../src/simulator/provider/conversation.ts'

const time: OfferedTool = {
  name: 'time',
  parameters: { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] },
}
const calculator: OfferedTool = {
  name: 'calculator',
  parameters: {
    type: 'object',
    properties: { count: { type: 'integer' }, mode: { enum: ['fast', 'slow'] } },
    required: ['count', 'mode'],
  },
}
const user = (text: string, images = 0): Turn => ({ role: 'user', text, images })
const talk = (...turns: Turn[]): Conversation => ({ system: '', turns, tools: [time, calculator], thinks: false })
const called: Turn = { role: 'assistant', text: '', calls: [{ id: 'a', name: 'time', arguments: {} }] }

test('it repeats what it was told, counts messages and keeps facts from earlier turns', () => {
  const answer = answerOf(
    talk(user('Remember that the code is 42.'), { role: 'assistant', text: 'ok', calls: [] }, user('And the code?', 1)),
  )
  expect(answer.blocks).toEqual([
    {
      type: 'text',
      text: 'You said: And the code?\nYou showed me 1 image(s).\nI remember: the code is 42.\nThis is your message number 2.',
    },
  ])
})

test('it calls the tools it is asked to use, in the order asked, with the arguments given', () => {
  const answer = answerOf(talk(user('please use calculator and time {"zone":"UTC","deep":{"a":1}}, 7 times')))
  expect(answer.blocks).toEqual([
    { type: 'toolCall', name: 'calculator', arguments: { count: 1, mode: 'fast' } },
    { type: 'toolCall', name: 'time', arguments: { zone: 'UTC', deep: { a: 1 } } },
  ])
})

test('rounds follow each other: the second is called after the first was answered', () => {
  const ask = user('调用 time {"zone":"UTC"} 然后 调用 calculator')
  expect(answerOf(talk(ask)).blocks).toMatchObject([{ name: 'time' }])
  expect(answerOf(talk(ask, called, { role: 'tool', name: 'time', text: 'noon' })).blocks).toMatchObject([
    { name: 'calculator' },
  ])
})

test('when every round is done it says what the tools answered', () => {
  const answer = answerOf(talk(user('use time'), called, { role: 'tool', name: 'time', text: 'noon' }))
  expect(answer.blocks).toMatchObject([
    { type: 'text', text: 'time answered: noon\nYou said: use time\nThis is your message number 1.' },
  ])
})

test('a tool that is only mentioned, or not offered, is not called', () => {
  expect(answerOf(talk(user('what time is it?'))).blocks).toMatchObject([{ type: 'text' }])
  expect(answerOf(talk(user('use timers and the oven'))).blocks).toMatchObject([{ type: 'text' }])
})

test('an empty history has an answer too', () => {
  expect(answerOf(talk()).blocks).toMatchObject([{ type: 'text' }])
})

test('asked to think, it thinks before it speaks and before it calls', () => {
  const thoughtful = { ...talk(user('use time')), thinks: true }
  expect(answerOf(thoughtful).blocks).toMatchObject([{ type: 'thinking' }, { type: 'toolCall' }])
  expect(answerOf({ ...thoughtful, turns: [user('hello')] }).blocks).toMatchObject([
    { type: 'thinking' },
    { type: 'text' },
  ])
})
