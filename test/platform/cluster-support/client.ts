import { KEY, type PlatformProcess } from '../lifecycle-support/platform-process.ts'
import type { Cluster } from './cluster.ts'

/** The cluster, as the helpers for one platform see it. */
export function asPlatform(cluster: Cluster): PlatformProcess {
  return {
    url: cluster.url,
    pid: 0,
    log: cluster.log,
    kill: () => Promise.reject(new Error('kill a node of the cluster')),
    stop: async () => {
      await cluster.stop()
      return 0
    },
    ask: async <T>(path: string, { method = 'GET', body }: { method?: string; body?: unknown } = {}) => {
      const response = await fetch(cluster.url + path, {
        method,
        headers: { 'X-Api-Key': KEY, 'Content-Type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
      return (text === '' ? undefined : JSON.parse(text)) as T
    },
  }
}
