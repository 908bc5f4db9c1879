import { spawn } from 'node:child_process'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface GitServer {
  readonly url: string
  close(): Promise<void>
}

/** A git server: git's own `http-backend`; with a token a private one, behind a check of it. */
export async function serveGit({ root, token }: { root: string; token?: string }): Promise<GitServer> {
  const wanted = token === undefined ? undefined : `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`
  const server = createServer((request, response) => {
    if (request.headers.authorization === wanted) serve(request, response, root)
    else response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="git"' }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** Speaks CGI with `git http-backend`: its headers first, then the body. */
function serve(request: IncomingMessage, response: ServerResponse, root: string): void {
  const { pathname, search } = new URL(request.url ?? '/', 'http://localhost')
  const child = spawn('git', ['-c', 'safe.directory=*', 'http-backend'], {
    env: {
      PATH: process.env['PATH'],
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: request.headers['git-protocol']?.toString() ?? '',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  request.pipe(child.stdin)
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.on('close', () => {
    const output = Buffer.concat(chunks)
    const end = output.indexOf('\r\n\r\n')
    const headers = output.subarray(0, end).toString().split('\r\n').map((line) => line.split(': ') as [string, string])
    const status = Number(headers.find(([name]) => name === 'Status')?.[1].split(' ')[0] ?? 200)
    response.writeHead(status, Object.fromEntries(headers.filter(([name]) => name !== 'Status'))).end(output.subarray(end + 4))
  })
}
