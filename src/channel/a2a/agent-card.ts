import type { JsonObject } from '../../base/json.ts'

/** What the configuration says about the agent. */
export interface AgentFacts {
  readonly name: string
  readonly description: string
  readonly version: string
  readonly skills: readonly SkillFacts[]
  /** Every request but the public card needs a token. */
  readonly needsToken: boolean
}

export interface SkillFacts {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: readonly string[]
  readonly examples?: readonly string[]
}

export const JSON_RPC_PATH = '/a2a'
export const HTTP_JSON_PATH = '/a2a/v1'

/**
 * The agent card, in the shape of version 1.0 and, beside it, with the fields that clients of version 0.3 look for: both
 * find it at the same address. `base` is the address we are reached at, without a slash at its end.
 */
export function agentCard({ name, description, version, skills, needsToken }: AgentFacts, base: string): JsonObject {
  const jsonRpc = `${base}${JSON_RPC_PATH}`
  return {
    name,
    description,
    version,
    supportedInterfaces: [
      { url: jsonRpc, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: `${base}${HTTP_JSON_PATH}`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      { url: jsonRpc, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    ],
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
    defaultInputModes: ['text/plain', 'application/json', 'image/*', 'application/octet-stream'],
    defaultOutputModes: ['text/plain'],
    skills: skills.map((skill) => ({ ...skill, tags: [...skill.tags], examples: [...(skill.examples ?? [])] })),
    ...(needsToken ? SECURITY : {}),
    // Version 0.3.
    protocolVersion: '0.3.0',
    url: jsonRpc,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [{ url: jsonRpc, transport: 'JSONRPC' }],
    supportsAuthenticatedExtendedCard: true,
  }
}

const SECURITY = {
  securitySchemes: {
    bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' }, type: 'http', scheme: 'Bearer' },
  },
  securityRequirements: [{ schemes: { bearer: { list: [] } } }],
  security: [{ bearer: [] }],
}
