import type { HttpAnswer, HttpChannel, HttpSender } from '../channel/http/channel.ts'
import type { Access } from './access.ts'
import { eventStream, json, retryAfter, type Call, type Route } from './http-routes.ts'
import { identityOf } from './sender-identity.ts'

/** Plain HTTP: messages, their runs, and what is done to a conversation in its turn. */
export function createMessageRoutes(channel: HttpChannel, access: Access): readonly Route[] {
  const senderOf = ({ url, principal, peer }: Call): HttpSender => ({
    ...identityOf(access, principal, url),
    address: peer.address,
  })
  const run = /^\/api\/runs\/([^/]+)$/u
  return [
    {
      method: 'POST',
      path: /^\/api\/messages$/u,
      answer: async (call) => toResponse(await channel.post(call.request, call.url, senderOf(call))),
    },
    { method: 'GET', path: run, answer: async ({ name, caller }) => toResponse(await channel.show(name, caller)) },
    { method: 'DELETE', path: run, answer: async ({ name, caller }) => toResponse(await channel.cancel(name, caller)) },
    {
      method: 'GET',
      path: /^\/api\/runs\/([^/]+)\/events$/u,
      answer: async ({ name, caller, request }) => toResponse(await channel.events(name, caller, request.headers)),
    },
    {
      method: 'POST',
      path: /^\/api\/sessions\/([^/]+)\/cleanup$/u,
      answer: async (call) => toResponse(await channel.maintain('cleanup', call.name, senderOf(call))),
    },
    {
      method: 'POST',
      path: /^\/api\/sessions\/([^/]+)\/compact$/u,
      answer: async (call) => toResponse(await channel.maintain('compact', call.name, senderOf(call))),
    },
  ]
}

function toResponse(answer: HttpAnswer): Response {
  if (answer.kind === 'json') return json(answer.body, answer.status, retryAfter(answer.status))
  return eventStream(answer.body)
}
