import { KEY, type PlatformProcess } from '../lifecycle-support/platform-process.ts'
import { askPlatform } from '../support/ask-platform.ts'
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
    ask: askPlatform(cluster.url, KEY),
  }
}
