import { defineConfig } from 'vitest/config'

/** Each project has the time limits that its kind of test needs: pure code, real servers, whole processes. */
export default defineConfig({
  test: {
    environment: 'node',
    pool: 'forks',
    // Most files of the platform and acceptance projects wait for servers and processes that they start: three keep two cores busy.
    maxWorkers: 3,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/{contract,client,action,support,scripts}/**/*.test.ts'],
          testTimeout: 10_000,
          hookTimeout: 10_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'platform',
          include: ['test/platform/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'acceptance',
          include: ['test/acceptance/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
})
