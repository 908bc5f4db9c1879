import type { ClientRequestArgs, IncomingMessage } from 'node:http'
import { NODE_HEADER, type NodeSignature } from '../nodes/signature.ts'
import type { AgentTarget } from './routes.ts'

/** Under this path a node takes requests of other nodes for the agents that it runs. */
export const NODE_AGENTS_PREFIX = '/_nodes/agents/'

/** On a refusal: the agent is no longer there, and has seen nothing of the request. */
export const GONE_HEADER = 'x-agent-gone'

/** An address under {@link NODE_AGENTS_PREFIX}: the agent, and the path and query that it sees. */
export interface DoorAddress {
  readonly agentId: string
  readonly path: string
}

export function parseDoorAddress(url: string | undefined): DoorAddress | null {
  const match = /^\/_nodes\/agents\/([0-9a-f-]{36})(\/.*)$/s.exec(url ?? '')
  return match === null ? null : { agentId: match[1] ?? '', path: match[2] ?? '/' }
}

/** Where a request for a target is sent, and what it carries besides the headers that the agent gets. */
export interface Way {
  readonly address: Pick<ClientRequestArgs, 'host' | 'port' | 'path' | 'protocol'>
  readonly headers: readonly string[]
}

/** Straight to an agent of this node; to that of another through its node, with a signature. */
export function wayTo(
  target: AgentTarget,
  { method, path, signature }: { method: string; path: string; signature: NodeSignature | undefined },
): Way {
  if (target.via === undefined) return { address: { protocol: 'http:', host: target.host, port: target.port, path }, headers: [] }
  const { protocol, hostname, port } = new URL(target.via)
  const whole = `${NODE_AGENTS_PREFIX}${target.agentId}${path}`
  const host = hostname.replace(/^\[|\]$/g, '')
  const address = { protocol, host, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port), path: whole }
  return { address, headers: signature === undefined ? [] : [NODE_HEADER, signature.sign(`${method} ${whole}`)] }
}

/** Only a node says so: an agent that is asked itself is there. */
export function isGone(answer: IncomingMessage, { target }: { readonly target: AgentTarget }): boolean {
  return target.via !== undefined && answer.headers[GONE_HEADER] !== undefined
}
