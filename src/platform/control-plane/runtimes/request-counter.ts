import { subscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'

/** Counts the requests that any HTTP server of this process is answering. */
export function createRequestCounter(): { readonly size: number } {
  const open = new Set<ServerResponse>()
  subscribe('http.server.request.start', (message) => {
    const { response } = message as { response: ServerResponse }
    open.add(response)
    response.once('close', () => open.delete(response))
  })
  return {
    get size() {
      return open.size
    },
  }
}
