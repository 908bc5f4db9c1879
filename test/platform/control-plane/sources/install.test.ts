import { describe, expect, test } from 'vitest'
import { failed } from '../../../../src/platform/control-plane/sources/install.ts'

const end = (tail: readonly string[]) => failed('npm ci', { exit: { code: 1, signal: null }, ok: false, stdout: '', tail }).message

/** As npm 11 writes them. */
const FOOTER = 'npm error A complete log of this run can be found in: /tmp/cache/_logs/2026-11-21T02_47_48_736Z-debug-0.log'

describe('the reason of a command that failed', () => {
  test.each([
    [
      'a version that nobody published',
      [
        'npm error code ETARGET',
        'npm error notarget No matching version found for date-fns@40.1.0.',
        "npm error notarget In most cases you or one of your dependencies are requesting a package version that doesn't exist.",
        FOOTER,
      ],
      'npm error notarget No matching version found for date-fns@40.1.0.',
    ],
    [
      'a registry that is away',
      [
        'npm error code ECONNREFUSED',
        'npm error syscall connect',
        'npm error errno ECONNREFUSED',
        'npm error FetchError: request to https://npm.example.com/left-pad failed, reason: connect ECONNREFUSED',
        FOOTER,
      ],
      'npm error FetchError: request to https://npm.example.com/left-pad failed, reason: connect ECONNREFUSED',
    ],
    [
      'a command of its own',
      ['> tsc', "src/agent.ts(3,7): error TS2304: Cannot find name 'x'.", 'Found 1 problem.'],
      "src/agent.ts(3,7): error TS2304: Cannot find name 'x'.",
    ],
  ])('%s', (_, tail, telling) => {
    expect(end(tail)).toBe(`npm ci exited with code 1: ${telling}`)
  })

  test('is missing when nothing was said', () => {
    expect(end([])).toBe('npm ci exited with code 1')
  })
})
