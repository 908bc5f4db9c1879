import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A bucket in a process of its own that takes everything, keeps nothing, and answers as a store does. It ends with its parent. */

const sizes = new Map<string, number>()
const uploads = new Map<string, number>()

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost')
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  request.on('end', () => {
    const upload = url.searchParams.get('uploadId')
    response.setHeader('etag', '"bench"')
    if (request.method === 'POST' && upload === null)
      return response.end(`<InitiateMultipartUploadResult><UploadId>${url.pathname}</UploadId></InitiateMultipartUploadResult>`)
    if (request.method === 'POST') {
      sizes.set(url.pathname, uploads.get(url.pathname) ?? 0)
      return response.end('<CompleteMultipartUploadResult><ETag>"bench"</ETag></CompleteMultipartUploadResult>')
    }
    if (request.method === 'PUT' && upload !== null) uploads.set(url.pathname, (uploads.get(url.pathname) ?? 0) + bytes)
    else if (request.method === 'PUT') sizes.set(url.pathname, bytes)
    if (request.method === 'HEAD') response.setHeader('content-length', sizes.get(url.pathname) ?? 0)
    return response.end()
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit(0))
