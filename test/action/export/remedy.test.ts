import { describe, expect, it } from 'vitest'
import { causeOf, failuresOf, remedyOf } from '../../../src/action/export/remedy.ts'

describe('what helps', () => {
  it.each([
    ['run_timeout: the time limit of one run passed', 'Narrow the date range'],
    ['workflow_timeout: 72 h', 'Reduce the scope'],
    ['destination: Access denied: the key pair lacks permission', 'Give the key pair permission'],
    ['destination: Bucket is not valid: it does not exist', 'Create the bucket'],
    ['An error occurred (InvalidAccessKeyId): The AWS Access Key ID you provided does not exist', 'Correct export-access-key-id'],
    ['NoSuchBucket', 'Fix the destination'],
    ['destination_deleted: the destination was deleted', 'Recreate the destination'],
    ['processing: Out of memory', 'Look at what the error names'],
  ])('%s', (error, remedy) => expect(remedyOf(error)).toContain(remedy))

  it('takes the cause from words in any letter case, and none from others', () => {
    expect(causeOf('INVALID ENDPOINT: not S3')).toBe('Invalid endpoint')
    expect(causeOf('the moon is full')).toBeUndefined()
  })
})

describe('failing runs', () => {
  const run = (status: string, errors: string[], day: string | null = '2026-08-19') => ({
    id: 'r',
    status,
    day,
    rows: 0,
    files: [],
    errors,
  })

  it('are those that failed or were given up, with their last error', () => {
    const runs = [
      run('COMPLETED', ['passed by']),
      run('FAILED', ['first', 'last']),
      run('CANCELLED', []),
      run('TIMEDOUT', [], null),
    ]
    expect(failuresOf(runs, (text) => text).failures).toMatchObject([
      { day: '2026-08-19', status: 'FAILED', attempts: 2, error: 'last' },
      { day: 'r', status: 'TIMEDOUT', attempts: 1, error: 'no error is told' },
    ])
  })

  it('are bounded, and redacted before they are cut', () => {
    const long = `${'x'.repeat(295)}secret`
    const { failures, more } = failuresOf(
      Array.from({ length: 25 }, () => run('FAILED', [long])),
      (text) => text.replaceAll('secret', '***'),
    )
    expect([failures.length, more]).toEqual([20, 5])
    expect(failures[0]?.error).not.toContain('sec')
  })

  it('are those with errors that are not complete, too', () => {
    const runs = [run('RUNNING', ['once']), run('RUNNING', []), run('COMPLETED', ['once'])]
    expect(failuresOf(runs, (text) => text)).toEqual({
      failures: [
        {
          day: '2026-08-19',
          status: 'RUNNING',
          attempts: 1,
          error: 'once',
          remedy: 'Look at what the error names; leaving the field or the day out shows whether it is the cause.',
        },
      ],
      more: 0,
    })
  })

  it('are told on one line, and helped by their status when they have no error', () => {
    const runs = [run('FAILED', ['first', '  no\n\n space  ']), run('FAILED', []), run('TIMEDOUT', [])]
    const { failures } = failuresOf(runs, (text) => text)
    expect(failures.map(({ error }) => error)).toEqual(['no space', 'no error is told', 'no error is told'])
    expect(failures[2]?.remedy).toBe('Narrow the date range, add a filter, or limit the fields (leave out inputs and outputs).')
  })

  it('have a remedy for the error alone where it has no cause of its own', () => {
    expect(remedyOf('NoSuchBucket')).toBe('Fix the destination and create a new export: this is not retried.')
    expect(remedyOf('the worker was restarted')).toBe('Nothing was wrong with the export: create a new one.')
  })
})
