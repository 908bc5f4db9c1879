import { createServer, type IncomingMessage, request as forward, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a request to a bucket is. */
export type Operation =
  'put' | 'create-upload' | 'upload-part' | 'complete-upload' | 'abort-upload' | 'head' | 'get' | 'delete' | 'other'

/** What goes wrong with a request. `after` variants strike when the store has carried it out. */
export type BucketFault =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly code?: string
      readonly body?: string
      readonly headers?: Record<string, string>
    }
  | { readonly kind: 'reset'; readonly when: 'before' | 'after' | 'half-way' }
  | { readonly kind: 'delay'; readonly ms: number }
  | { readonly kind: 'silence' }
  /** The store's answer says a smaller size than the object has. */
  | { readonly kind: 'shrunk' }
  /** The store gets half of the body, and then the line breaks. */
  | { readonly kind: 'half-written' }
  /** The store keeps only this many bytes of an object, and says that all is well. */
  | { readonly kind: 'cut'; readonly bytes: number }

/** What stands before a store and can break things. */
export interface BucketProxy {
  /** Address of the proxy, to be used as `endpoint_url`. */
  readonly url: string
  readonly requests: { readonly operation: Operation; readonly key: string; readonly struck: boolean }[]
  /** The next `times` requests of an operation meet a fault. */
  fail(operation: Operation | readonly Operation[], fault: BucketFault, times?: number): void
  /** From now on these operations are denied, as to a user who may not do them. */
  deny(...operations: Operation[]): void
  clear(): void
  /** Called with each request before it is passed on; the request waits for it. */
  onRequest: ((operation: Operation, key: string) => Promise<void> | void) | null
  down(): Promise<void>
  up(): Promise<void>
}

/** `answered`: operations that the proxy answers itself, with 204, because the store does not have them. */
export async function startBucketProxy({
  storePort,
  answered: own = [],
}: {
  storePort: number
  answered?: readonly Operation[]
}): Promise<BucketProxy> {
  const queue: { operations: readonly Operation[]; fault: BucketFault; left: number }[] = []
  const denied = new Set<Operation>()
  const requests: BucketProxy['requests'] = []

  const proxy = createServer((request, response) => {
    void handle(request, response).catch(() => response.destroy())
  })
  proxy.keepAliveTimeout = 500

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    const operation = operationOf(request.method ?? 'GET', url)
    const key = decodeURIComponent(url.pathname).split('/').slice(2).join('/')
    await self.onRequest?.(operation, key)
    const entry = queue.find(({ operations, left }) => left > 0 && operations.includes(operation))
    if (entry !== undefined) entry.left -= 1
    const fault = entry?.fault ?? (denied.has(operation) ? DENIAL : null)
    ;(requests as { operation: Operation; key: string; struck: boolean }[]).push({ operation, key, struck: fault !== null })
    if (fault?.kind === 'silence') return void request.resume()
    if (fault?.kind === 'reset' && fault.when === 'before') return void request.socket.resetAndDestroy()
    if (fault?.kind === 'reset' && fault.when === 'half-way') {
      request.once('data', () => request.socket.resetAndDestroy())
      return
    }
    const received = await readAll(request)
    if (fault?.kind === 'delay') await new Promise((resolve) => setTimeout(resolve, fault.ms))
    if (fault?.kind === 'answer') return answer(response, fault, request.method === 'HEAD')
    if (own.includes(operation)) return void response.writeHead(204).end()
    const body = fault?.kind === 'cut' ? received.subarray(0, fault.bytes) : received
    const { connection: _connection, 'content-md5': _md5, ...headers } = request.headers
    const onward = forward(
      {
        host: '127.0.0.1',
        port: storePort,
        method: request.method,
        path: request.url,
        agent: false,
        headers: { ...headers, 'content-length': body.length },
      },
      (answered) => {
        void readAll(answered).then((content) => {
          if (fault?.kind === 'reset') return void request.socket.resetAndDestroy()
          const { connection: _, 'transfer-encoding': __, ...kept } = answered.headers
          response.writeHead(answered.statusCode ?? 502, {
            ...kept,
            ...(fault?.kind === 'shrunk' ? { 'content-length': Number(answered.headers['content-length']) - 1 } : {}),
            ...(request.method === 'HEAD' ? {} : { 'content-length': content.length }),
          })
          response.end(content)
        })
      },
    )
    onward.on('error', () => response.destroy())
    if (fault?.kind === 'half-written') {
      onward.write(body.subarray(0, Math.floor(body.length / 2)), () => onward.destroy())
      return
    }
    onward.end(body)
  }
  const listen = (port: number) => new Promise<void>((resolve) => void proxy.listen(port, '127.0.0.1', resolve))
  const down = () =>
    new Promise<void>((resolve) => {
      proxy.close(() => resolve())
      proxy.closeAllConnections()
    })
  await listen(0)
  const { port } = proxy.address() as AddressInfo
  const self: BucketProxy = {
    url: `http://127.0.0.1:${port}`,
    requests,
    onRequest: null,
    fail: (operation, fault, times = 1) => void queue.push({ operations: [operation].flat() as Operation[], fault, left: times }),
    deny: (...operations) => operations.forEach((one) => denied.add(one)),
    clear: () => {
      queue.splice(0)
      denied.clear()
      requests.splice(0)
      self.onRequest = null
    },
    down,
    up: () => listen(port),
  }
  return self
}

const DENIAL: BucketFault = { kind: 'answer', status: 403, code: 'AccessDenied' }

function operationOf(method: string, { searchParams }: URL): Operation {
  if (method === 'POST')
    return searchParams.has('uploads') ? 'create-upload' : searchParams.has('uploadId') ? 'complete-upload' : 'other'
  if (method === 'PUT') return searchParams.has('partNumber') ? 'upload-part' : 'put'
  if (method === 'DELETE') return searchParams.has('uploadId') ? 'abort-upload' : 'delete'
  if (method === 'HEAD') return 'head'
  return method === 'GET' ? 'get' : 'other'
}

function answer(response: ServerResponse, fault: BucketFault & { kind: 'answer' }, bare: boolean): void {
  // A text in the message that means something else than the code: only the code may be looked at.
  const xml = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${fault.code}</Code><Message>NoSuchBucket InvalidAccessKeyId</Message></Error>`
  const body = fault.body ?? (fault.code === undefined ? '' : xml)
  response.writeHead(fault.status, {
    'content-type': 'application/xml',
    'content-length': bare ? 0 : Buffer.byteLength(body),
    ...fault.headers,
  })
  response.end(bare ? '' : body)
}

async function readAll(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}
