import { defineConfig } from 'vitest/config'

/** The tests that mutation testing runs, thousands of times: of pure code, without processes and real waits. */
export default defineConfig({
  test: {
    environment: 'node',
    pool: 'threads',
    include: ['test/{contract,client,action}/**/*.test.ts'],
    exclude: [
      // They start processes.
      'test/client/network.test.ts',
      'test/contract/git-ref.test.ts',
      // They read sources and other tests as text.
      'test/action/registry.test.ts',
      'test/contract/rate-limits-page.test.ts',
    ],
    // Below Stryker's own limit: a test that hangs fails by itself, and the process that ran it goes on.
    testTimeout: 6000,
    hookTimeout: 6000,
  },
})
