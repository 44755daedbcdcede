import { describe, expect, it } from 'vitest'
import type { Dispatcher } from 'undici'
import type { HttpRequest } from '../../../src/base/http.ts'
import { Exchange } from '../../../src/platform/http-exchange.ts'

const REQUEST: HttpRequest = {
  method: 'POST',
  url: 'http://model.test/v1',
  headers: {},
  body: 'question',
  connectTimeoutMs: 1_000,
  firstByteTimeoutMs: 1_000,
  idleTimeoutMs: 1_000,
}

describe('a request that is given up', () => {
  it('is not sent on a connection that comes up in the same moment', async () => {
    const { exchange, controller, giveUp, aborts } = begun()
    giveUp()
    exchange.onRequestStart(controller)
    expect(aborts).toEqual(['given up'])
    await expect(exchange.response).rejects.toThrow('enough')
  })

  it('hands out nothing that arrives before the connection is closed', async () => {
    const { exchange, controller, giveUp, aborts } = begun()
    exchange.onRequestStart(controller)
    exchange.onResponseStart(controller, 200, {})
    const { body } = await exchange.response
    giveUp()
    exchange.onResponseData(controller, Buffer.from('too late'))
    await expect(body[Symbol.asyncIterator]().next()).rejects.toThrow('enough')
    expect(aborts).toEqual(['given up'])
  })

  it('gets no answer that begins before the connection is closed', async () => {
    const { exchange, controller, giveUp } = begun()
    exchange.onRequestStart(controller)
    giveUp()
    exchange.onResponseStart(controller, 200, {})
    await expect(exchange.response).rejects.toThrow('enough')
  })
})

function begun(): {
  exchange: Exchange
  controller: Dispatcher.DispatchController
  giveUp: () => void
  aborts: string[]
} {
  const stop = new AbortController()
  const aborts: string[] = []
  const controller: Dispatcher.DispatchController = {
    aborted: false,
    paused: false,
    reason: null,
    rawHeaders: null,
    rawTrailers: null,
    pause: () => undefined,
    resume: () => undefined,
    abort: (reason) => aborts.push(reason.message),
  }
  return {
    exchange: new Exchange(REQUEST, 1_000, stop.signal),
    controller,
    giveUp: () => stop.abort(new Error('enough')),
    aborts,
  }
}
