import type { HttpSender } from '../channel/http/channel.ts'
import type { OpenAiAnswer } from '../channel/openai/answering.ts'
import type { OpenAiChannel } from '../channel/openai/channel.ts'
import { toOpenAiProblem } from '../channel/openai/errors.ts'
import { GatewayError } from '../core/errors.ts'
import type { Caller } from '../core/inbound.ts'
import type { Access } from './access.ts'
import type { Door } from './http.ts'
import { eventStream, json, retryAfter, type Call, type Problem, type Route } from './http-routes.ts'
import { identityOf } from './sender-identity.ts'

/** For clients of OpenAI's API. */
export function createOpenAiRoutes(channel: OpenAiChannel, access: Access): readonly Route[] {
  const senderOf = ({ url, principal, peer }: Call): HttpSender => ({
    ...identityOf(access, principal, url),
    address: peer.address,
  })
  const readerOf = (call: Call): Caller => senderOf(call).caller ?? call.caller
  return [
    {
      method: 'GET',
      path: /^\/v1\/models$/u,
      answer: async () => json({ object: 'list', data: channel.models().map(toModel) }),
    },
    {
      method: 'GET',
      path: /^\/v1\/models\/(.+)$/u,
      answer: async ({ name }) => {
        if (channel.models().includes(name)) return json(toModel(name))
        throw new GatewayError('MODEL_UNKNOWN', 'no model has this name', { field: 'model' })
      },
    },
    {
      method: 'POST',
      path: /^\/v1\/chat\/completions$/u,
      answer: async (call) => toResponse(await channel.post('chat', call.request, senderOf(call))),
    },
    {
      method: 'POST',
      path: /^\/v1\/responses$/u,
      answer: async (call) => toResponse(await channel.post('responses', call.request, senderOf(call))),
    },
    {
      method: 'GET',
      path: /^\/v1\/responses\/([^/]+)$/u,
      answer: async (call) => toResponse(await channel.response(call.name, readerOf(call), call.request.signal)),
    },
  ]
}

/** Errors below `/v1` in OpenAI's form, also those of access and of unknown addresses. */
export const OPENAI_DOOR: Door = {
  below: '/v1/',
  show: (problem: Problem) => {
    const { status, body } = toOpenAiProblem(problem)
    return json(body, status, { ...problem.headers })
  },
}

function toModel(id: string) {
  return { id, object: 'model', created: 0, owned_by: id.includes('/') ? (id.split('/', 1)[0] ?? 'clew') : 'clew' }
}

function toResponse(answer: OpenAiAnswer): Response {
  const session = {
    'x-clew-session': headerOf(answer.key),
    ...(answer.isRepeat === true ? { 'x-clew-redelivered': '1' } : {}),
  }
  if (answer.kind === 'json') {
    // OpenAI's libraries ask again after many kinds of failure; a turn that failed for good would only fail again.
    const again = answer.isFinal === true ? { 'x-should-retry': 'false' } : retryAfter(answer.status)
    return json(answer.body, answer.status, { ...session, ...again })
  }
  return eventStream(answer.body, session)
}

/** A header holds plain letters only: other keys are percent-encoded, and understood in that form too. */
function headerOf(key: string): string {
  return /^[\x21-\x7e]*$/u.test(key) ? key : encodeURIComponent(key)
}
