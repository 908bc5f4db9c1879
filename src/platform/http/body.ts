import { drain } from './drain.ts'
import { HttpProblem } from './problem.ts'

/** Largest body of a control-plane request, in bytes, and how long its sender may take over it, in milliseconds. */
export const BODY_MAX = 4 * 1024 * 1024
export const BODY_LIMIT_MS = 30_000

/**
 * The whole body of a request, within bounds of size and time.
 * @throws {HttpProblem} 408, 413, or 415 for an encoding such as gzip.
 */
export async function readBody(request: Request, { maxBytes = BODY_MAX, limitMs = BODY_LIMIT_MS } = {}): Promise<Buffer> {
  const encoding = request.headers.get('Content-Encoding')
  if (encoding !== null && encoding.toLowerCase() !== 'identity') {
    throw new HttpProblem(415, 'The request body has a Content-Encoding: send it as plain JSON.')
  }
  if (Number(request.headers.get('Content-Length')) > maxBytes) throw tooLarge(maxBytes)
  if (request.body === null) return Buffer.alloc(0)

  const reader = request.body.getReader()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new HttpProblem(408, `The request body did not arrive within ${limitMs} ms.`)), limitMs)
  })
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), late])
      if (done) return Buffer.concat(chunks)
      size += value.byteLength
      if (size > maxBytes) throw tooLarge(maxBytes)
      chunks.push(value)
    }
  } catch (error) {
    void drain(reader)
    throw error
  } finally {
    clearTimeout(timer)
  }
}

function tooLarge(maxBytes: number): HttpProblem {
  return new HttpProblem(413, `The request body is larger than ${maxBytes} bytes.`)
}
