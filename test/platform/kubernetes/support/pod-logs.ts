import type { ServerResponse } from 'node:http'
import type { Stored } from './objects.ts'

interface PodLog {
  lines: string[]
  previous: string[]
  readonly readers: Set<ServerResponse>
}

/** What containers print, and who reads it. */
export interface PodLogBook {
  print(pod: Stored, text: string): void
  /** The container has ended: whoever follows its log is at the end. */
  end(pod: Stored): void
  /** It is started again, with a log of its own. */
  restart(pod: Stored): void
  answer(pod: Stored, query: URLSearchParams, response: ServerResponse): boolean
}

export function createPodLogBook(): PodLogBook {
  const logs = new Map<string, PodLog>()
  let ticks = 0
  const of = ({ metadata: { uid } }: Stored) => {
    const log = logs.get(uid) ?? { lines: [], previous: [], readers: new Set() }
    logs.set(uid, log)
    return log
  }
  const stamp = () => {
    ticks += 1
    return new Date().toISOString().replace(/Z$/, `${String(ticks % 1_000_000).padStart(6, '0')}Z`)
  }
  return {
    print: (pod, text) => {
      const log = of(pod)
      const line = `${stamp()} ${text}\n`
      log.lines.push(line)
      for (const reader of log.readers) reader.write(line)
    },
    end: (pod) => {
      for (const reader of of(pod).readers) reader.end()
    },
    restart: (pod) => {
      const log = of(pod)
      log.previous = log.lines
      log.lines = []
    },
    answer: (pod, query, response) => {
      const [status] = (pod.status?.containerStatuses ?? []) as {
        state: Record<string, unknown>
        lastState?: Record<string, unknown>
      }[]
      const begun =
        status !== undefined && (status.state['running'] ?? status.state['terminated'] ?? status.lastState?.['terminated'])
      if (begun === undefined || begun === false) return false
      const log = of(pod)
      response.writeHead(200, { 'Content-Type': 'text/plain' }).flushHeaders()
      const from = Math.floor(Date.parse(query.get('sinceTime') ?? '1970-01-01T00:00:00Z') / 1000)
      const lines = (query.get('previous') === 'true' ? log.previous : log.lines).filter(
        (line) => Math.floor(Date.parse(`${line.slice(0, 23)}Z`) / 1000) >= from,
      )
      const tail = query.get('tailLines') === null ? lines : lines.slice(-Number(query.get('tailLines')))
      const plain = (line: string) => (query.get('timestamps') === 'true' ? line : line.slice(line.indexOf(' ') + 1))
      for (const line of tail) response.write(plain(line))
      if (query.get('follow') !== 'true' || status?.state['running'] === undefined) response.end()
      else {
        log.readers.add(response)
        response.once('close', () => log.readers.delete(response))
      }
      return true
    },
  }
}
