import { defineConfig } from 'vitest/config'

/** Each project has the time limits that its kind of test needs: pure code, real servers, whole processes. */
export default defineConfig({
  test: {
    environment: 'node',
    pool: 'forks',
    // Two at a time: the files of the platform and acceptance projects start servers and processes of their own.
    maxWorkers: 2,
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
