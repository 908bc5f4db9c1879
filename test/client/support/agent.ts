import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { type AgentServer, createAgentServer } from '../../../src/client/agent-server.ts'
import type { RequestFailure } from '../../../src/client/failure.ts'
import type { RunEvent } from '../../../src/contract/run-stream.ts'
import { API_KEY, failureOf, testTransport, unaborted } from './fixtures.ts'
import { serve } from './serve.ts'

export const METADATA = 'event: metadata\ndata: {"run_id":"r","attempt":1}\n\n'
export const UPDATE = 'event: updates\ndata: {"echo":{"text":"grüße 🌍"}}\n\n'
/** What `METADATA` and `UPDATE` are read as. */
export const EVENTS = [
  { event: 'metadata', data: { run_id: 'r', attempt: 1 } },
  { event: 'updates', data: { echo: { text: 'grüße 🌍' } } },
]

export const agentAt = (baseUrl: string): AgentServer =>
  createAgentServer(testTransport({ baseUrl, headers: { 'X-Api-Key': API_KEY } }))

/** The client of an agent server that lasts as long as the test. */
export async function agent(listener: RequestListener, prefix = ''): Promise<AgentServer> {
  return agentAt((await serve(listener)).url + prefix)
}

/** An agent server whose every answer is made by `write`, after the headers of a stream. */
export const streaming = (write: (response: ServerResponse, request: IncomingMessage) => unknown): Promise<AgentServer> =>
  agent((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    void write(response, request)
  })

export const run = (server: AgentServer, signal = unaborted()): ReturnType<AgentServer['streamRun']> =>
  server.streamRun({ assistantId: 'agent', input: { messages: [] }, streamMode: 'updates', signal })

/** What came, and how it ended. */
export async function outcome(
  server: AgentServer,
  signal?: AbortSignal,
  onEvent?: () => void,
): Promise<{ events: RunEvent[]; failure: RequestFailure | undefined }> {
  const events: RunEvent[] = []
  const reading = async () => {
    for await (const event of run(server, signal)) {
      events.push(event)
      onEvent?.()
    }
    throw new Error('it ended well')
  }
  const failure = await failureOf(reading()).catch((error: Error) => {
    if (error.message !== 'the request succeeded' && error.message !== 'it ended well') throw error
    return undefined
  })
  return { events, failure }
}
