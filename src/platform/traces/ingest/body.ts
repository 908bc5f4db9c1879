import { Readable, type Transform } from 'node:stream'
import { constants, createGunzip, createZstdDecompress } from 'node:zlib'
import { drain } from '../../http/drain.ts'
import { IngestRefusal } from './refusal.ts'

/** Most memory that a zstd frame may ask for, as a power of two in bytes: 32 MiB. */
const ZSTD_WINDOW_LOG_MAX = 25

/** How long a sender may take over its body. Milliseconds. */
const BODY_LIMIT_MS = 120_000

/** Room for the bodies that are in memory at one time: beyond it requests are turned away before they are read. */
export interface Intake {
  /** @throws {IngestRefusal} 503 when there is no room for so many more bytes. */
  take(bytes: number): void
  release(bytes: number): void
}

export function createIntake(bytesMax: number): Intake {
  let used = 0
  return {
    take(bytes) {
      if (used + bytes > bytesMax) throw new IngestRefusal(503, 'too much is being ingested at once: send it again in a second')
      used += bytes
    },
    release: (bytes) => void (used -= bytes),
  }
}

/**
 * Reads the whole body, decompressed by its `Content-Encoding`, and hands it on; its bytes count against the intake until `use`
 * is done. A body that is larger than `bytesMax`, before or after decompression, is refused as soon as that shows.
 * @throws {IngestRefusal} 400 for a broken compression, 413, 415 for an unknown encoding, 503.
 */
export async function withBody<T>(
  request: Request,
  { bytesMax, intake }: { bytesMax: number; intake: Intake },
  use: (body: Buffer) => Promise<T>,
): Promise<T> {
  const declared = Number(request.headers.get('content-length') ?? 0)
  if (declared > bytesMax) throw tooLarge(bytesMax)
  let taken = 0
  try {
    const chunks: Buffer[] = []
    for await (const chunk of decode(request, bytesMax)) {
      if (taken + chunk.length > bytesMax) throw tooLarge(bytesMax)
      intake.take(chunk.length)
      taken += chunk.length
      chunks.push(chunk)
    }
    return await use(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))
  } finally {
    intake.release(taken)
  }
}

async function* decode(request: Request, bytesMax: number): AsyncGenerator<Buffer> {
  const decoder = createDecoder(request.headers.get('content-encoding'))
  if (request.body === null) return
  // A client that goes away mid-body ends the reading like any other broken body.
  const source = readBounded(request.body, bytesMax)
  if (decoder === null) {
    yield* source
    return
  }
  const input = Readable.from(source, { objectMode: false })
  let inputError: Error | undefined
  input.once('error', (error) => {
    inputError = error
    decoder.destroy(error)
  })
  try {
    for await (const chunk of input.pipe(decoder)) yield chunk as Buffer
  } catch (error) {
    if (inputError !== undefined) throw inputError
    throw new IngestRefusal(400, `the body could not be decompressed: ${(error as Error).message}`)
  } finally {
    input.destroy()
    decoder.destroy()
  }
}

async function* readBounded(body: ReadableStream<Uint8Array>, bytesMax: number): AsyncGenerator<Buffer> {
  let read = 0
  const reader = body.getReader()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new IngestRefusal(408, `the body did not arrive within ${BODY_LIMIT_MS} ms`)), BODY_LIMIT_MS)
  })
  try {
    for (;;) {
      const next = reader.read().catch((error: Error) => {
        throw new IngestRefusal(400, `the body ended early: ${error.message}`)
      })
      const { done, value } = await Promise.race([next, late])
      if (done) return
      read += value.length
      if (read > bytesMax) throw tooLarge(bytesMax)
      yield Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    }
  } finally {
    clearTimeout(timer)
    void drain(reader)
  }
}

function createDecoder(encoding: string | null): Transform | null {
  switch ((encoding ?? 'identity').trim().toLowerCase()) {
    case 'identity':
    case '':
      return null
    case 'gzip':
    case 'x-gzip':
      return createGunzip()
    case 'zstd':
      return createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX } })
    default:
      throw new IngestRefusal(415, `the Content-Encoding ${JSON.stringify(encoding)} is not known: send gzip, zstd or none`)
  }
}

function tooLarge(bytesMax: number): IngestRefusal {
  return new IngestRefusal(
    413,
    `the body is larger than ${bytesMax} bytes (${bytesMax / 1024 / 1024} MiB): send the runs in smaller requests`,
  )
}
