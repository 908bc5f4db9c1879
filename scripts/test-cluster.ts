import { startVitest } from 'vitest/node'

/**
 * `npm run test:cluster`: the tests of the control plane and of bulk export against a PostgreSQL server with two `api` and two `queue`
 * processes, of which one of each is killed at random times and replaced (test/platform/cluster-support/topology.ts).
 */
const FOLDERS = ['test/platform/control-plane', 'test/platform/bulk-export', 'test/platform/cluster']

process.env['PLATFORM_TEST_TOPOLOGY'] = 'cluster'
const given = process.argv.slice(2)
const vitest = await startVitest('test', given.length > 0 ? given : FOLDERS, {
  run: true,
  watch: false,
  // Each file has four processes of its own.
  maxWorkers: 1,
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // A request that may not be repeated can lose its answer to a kill; such a test is run once more, and nothing else is.
  retry: { count: 3, condition: /the answer was lost to a kill/ },
})
await vitest.close()
