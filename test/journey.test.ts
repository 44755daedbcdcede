import { expect, it } from 'vitest'
import { readDocument, rowsOf } from './support/documents.ts'
import { gatewaysOfThisFile } from './support/gateways.ts'
import { isNamed, journeyOf, nameOf } from './support/journey.ts'

const { open } = gatewaysOfThisFile()
const { text } = readDocument('docs/maintainers/flow.md')

it('takes the calls and files that docs/maintainers/flow.md describes', async () => {
  const gateway = await open()
  const client = await gateway.connect('?uid=ann')
  // What is made once is made by the first messages.
  await client.ask({ id: '1', content: 'hello', session: 's' })
  await client.ask({ id: '2', content: 'hello again', session: 's' })
  const stretches = await journeyOf(gateway, client)
  const written = rowsOf(text).filter(([stretch = '']) => stretch.includes(' → '))
  expect(written.map(([stretch = '']) => stretch.split(' ')[0])).toEqual(stretches.map(({ from }) => from))
  for (const [at, { from, frames, call }] of stretches.entries()) {
    const [stretch = '', calls = ''] = written[at] ?? []
    const names = [...calls.matchAll(/`([^`]+)`/gu)].map(([, name = '']) => nameOf(name))
    expect(names, from).toEqual([...frames.filter(isNamed).map(({ name }) => nameOf(name)), call])
    const steps = [...stretch.matchAll(/\d+/gu)].map(([step]) => stepOf(Number(step)))
    const unmentioned = frames.filter(isNamed).filter(({ file }) => !steps.some((step) => step.includes(`src/${file}`)))
    expect(unmentioned, `files of "${stretch}" that its steps do not name`).toEqual([])
  }
})

function stepOf(number: number): string {
  return text.split(/^### /mu).find((step) => step.startsWith(`${number}. `)) ?? ''
}
