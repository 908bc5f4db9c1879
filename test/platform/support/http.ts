import { createServer, type IncomingMessage, request as startRequest, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface TestServer {
  readonly server: Server
  readonly port: number
  readonly url: string
  close(): Promise<void>
}

/** A real server on a free port of this machine. */
export async function listen(listener: RequestListener): Promise<TestServer> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    server,
    port,
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** False when the connection broke in the middle of the body. */
  readonly complete: boolean
}

/** One request on a connection of its own, exactly as given. */
export function send(
  url: string,
  { method = 'GET', headers = {}, body = '' }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = startRequest(url, { method, headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('error', () => undefined)
      response.on('close', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text, complete: response.complete }),
      )
    })
    request.on('error', reject)
    request.end(body)
  })
}
