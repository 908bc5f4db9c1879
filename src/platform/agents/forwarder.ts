import { type IncomingMessage, request as startRequest, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { NODE_HEADER, type NodeSignature } from '../nodes/signature.ts'
import { carry, isIdempotent, type Miss } from './carry.ts'
import type { Exchange } from './drain.ts'
import { forwardedHeaders } from './headers.ts'
import type { AgentFault } from './fault-log.ts'
import type { AgentHost } from './host.ts'
import { GONE_HEADER, parseDoorAddress } from './node-door.ts'
import { refuse, type Refusal } from './refusal.ts'
import type { AgentRoutes, AgentTarget, TargetUse } from './routes.ts'
import { isWebSocket, NO_OTHER_PROTOCOL, refuseUpgrade, upgrade, UPGRADE_HEADERS } from './upgrade.ts'

/** Takes what other nodes send to the agents of this one. */
export interface AgentForwarder {
  request(request: IncomingMessage, response: ServerResponse): void
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
}

export interface ForwarderOptions {
  /** Null while this node runs no agents: it begins, ends, or has another role. */
  readonly host: () => Pick<AgentHost, 'find'> | null
  readonly routes: AgentRoutes
  readonly signature: NodeSignature
  /** Told of what went wrong between this node and an agent of it. */
  readonly onFault?: (fault: AgentFault) => void
}

const STRANGER: Refusal = { status: 401, detail: 'This address is for other nodes of the platform only.' }
const GONE: Refusal = {
  status: 503,
  detail: 'The agent is not there any more. Try again shortly.',
  headers: { [GONE_HEADER]: '1' },
}
const BROKEN: Refusal = { status: 502, detail: 'The agent closed the connection before it answered. Try again shortly.' }

/** Once here; whether it goes elsewhere is for the node that sent it. */
const mayRepeat = async (attempt: number, miss: Miss) => miss === 'reset' && attempt === 1

/**
 * Agents listen on their own machine only; this is their door for other nodes, which prove themselves by a signature. What comes through it
 * counts as in flight here, where agents are drained. A request for an agent that is no longer there is refused unread, so that the node that
 * sent it can send it to the next one.
 */
export function createAgentForwarder({ host, routes, signature, onFault }: ForwarderOptions): AgentForwarder {
  const admit = (request: IncomingMessage) => {
    const address = parseDoorAddress(request.url)
    if (address === null || !signature.verify(request.headers[NODE_HEADER], `${request.method} ${request.url}`)) return null
    const take = (exchange: Exchange): TargetUse | null => {
      const agent = host()?.find(address.agentId)
      if (agent === undefined) return null
      const target: AgentTarget = { ...agent.process.address, revisionId: agent.revisionId, agentId: agent.id }
      return routes.take(target, exchange)
    }
    return { take, path: address.path }
  }
  const tell = (error: Error, { target }: TargetUse) => onFault?.({ revisionId: target.revisionId, error })
  return {
    request: (request, response) => {
      const admission = admit(request)
      if (admission === null) return refuse(request, response, STRANGER)
      const { take, path } = admission
      const reusable = isIdempotent(request.method)
      carry({
        request,
        response,
        take,
        connect: ({ target, connections }) =>
          startRequest({
            host: target.host,
            port: target.port,
            method: request.method,
            path,
            agent: reusable ? connections : false,
            headers: [
              ...forwardedHeaders(request.rawHeaders, request.headers, NODE_HEADER),
              // A body without a length stays chunked.
              ...(request.headers['transfer-encoding'] === undefined ? [] : ['Transfer-Encoding', 'chunked']),
              ...(reusable ? [] : ['Connection', 'close']),
            ],
            setHost: false,
          }),
        answerHeaders: (answer) => forwardedHeaders(answer.rawHeaders, answer.headers, GONE_HEADER),
        mayRepeat,
        refusals: { none: GONE, unreachable: GONE, broken: BROKEN },
        onFault: tell,
      })
    },
    upgrade: (request, socket, head) => {
      socket.once('error', () => socket.destroy())
      const admission = admit(request)
      if (admission === null) return refuseUpgrade(socket, STRANGER)
      if (!isWebSocket(request)) return refuseUpgrade(socket, NO_OTHER_PROTOCOL)
      const { take, path } = admission
      const headers = [...forwardedHeaders(request.rawHeaders, request.headers, NODE_HEADER), ...UPGRADE_HEADERS]
      upgrade({
        socket,
        head,
        take,
        connect: ({ target }) =>
          startRequest({ host: target.host, port: target.port, path, headers, agent: false, setHost: false }),
        mayRepeat: async () => false,
        none: GONE,
        unreachable: GONE,
        onFault: tell,
      })
    },
  }
}
