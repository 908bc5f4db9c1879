import { PassThrough, type Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Container } from 'dockerode'
import { type OutputStream, splitLines } from '../lines.ts'
import type { Engine } from './engine.ts'

const PAUSE_MS = 500
/** A connection is made anew after this: it may be dead without a word. */
const CONNECTION_MS = 10 * 60_000
/** How long output is still read after the container has ended. */
const OUTPUT_GRACE_MS = 2000

export interface FollowOptions {
  readonly engine: Engine
  readonly container: Container
  readonly onLine: (line: string, stream: OutputStream) => void
  /** Settles when the container has ended. */
  readonly ended: Promise<unknown>
}

/**
 * Reads what a container prints, from its beginning to its end. A connection that breaks is made again where it broke: each line carries
 * its time. Resolves when all is read.
 */
export async function followLog({ engine, container, onLine, ended }: FollowOptions): Promise<void> {
  let over = false
  let last = ''
  const enough = new AbortController()
  void ended.then(() => {
    over = true
    setTimeout(() => enough.abort(), OUTPUT_GRACE_MS).unref()
  })
  const take = (line: string, stream: OutputStream) => {
    const [, stamp = '', text = line] = /^(\d{4}-\d\d-\d\dT\S+) ?(.*)$/.exec(line) ?? []
    // Told before the connection broke.
    if (stamp !== '' && stamp <= last && resumed) return
    if (stamp > last) last = stamp
    if (text !== '') onLine(text, stream)
  }
  let resumed = false
  for (;;) {
    const wasOver = over
    try {
      await readOnce({
        engine,
        container,
        since: last,
        take,
        signal: AbortSignal.any([enough.signal, AbortSignal.timeout(CONNECTION_MS)]),
      })
    } catch {
      // The engine is away, or the container is gone: then it ends below.
    }
    if (wasOver || enough.signal.aborted) return
    resumed = true
    // A log that ended with its container is read once more, for what came between the two.
    await Promise.race([ended, sleep(PAUSE_MS)])
  }
}

interface Reading {
  readonly engine: Engine
  readonly container: Container
  readonly since: string
  readonly take: (line: string, stream: OutputStream) => void
  readonly signal: AbortSignal
}

async function readOnce({ engine, container, since, take, signal }: Reading): Promise<void> {
  const seconds = since === '' ? 0 : Math.floor(Date.parse(since) / 1000)
  const options = { follow: true, stdout: true, stderr: true, timestamps: true, since: seconds, abortSignal: signal } as const
  const stream = (await container.logs(options)) as unknown as Readable
  const out = new PassThrough()
  const err = new PassThrough()
  const read = Promise.all([splitLines(out, 'stdout', take), splitLines(err, 'stderr', take)])
  const end = () => {
    out.end()
    err.end()
  }
  stream.once('close', end).once('end', end).once('error', end)
  engine.docker.modem.demuxStream(stream, out, err)
  await read
}
