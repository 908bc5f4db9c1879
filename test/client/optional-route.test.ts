import { describe, expect, it } from 'vitest'
import type { FailureFields, RequestFailure } from '../../src/client/failure.ts'
import { isMissingResource, isMissingRoute, onOptionalRoute } from '../../src/client/optional-route.ts'
import { httpFailure } from '../support/request-failure.ts'
import { failureOf } from './support/fixtures.ts'

const ID = 'abcdef00-1111-4111-8111-111111111111'

const failure = (changes: Partial<FailureFields> = {}): RequestFailure => httpFailure(404, { path: '/x', ...changes })

describe('a failed request', () => {
  it.each<[string, unknown, 'route' | 'resource' | 'neither']>([
    ['a 404 without words', failure({}), 'route'],
    ['a 404 with other words', failure({ detail: 'Not Found' }), 'route'],
    ['a 404 that names the id', failure({ detail: `Deployment ${ID} not found` }), 'resource'],
    ['a 404 that names the id in capitals', failure({ detail: `Deployment ${ID.toUpperCase()} not found` }), 'resource'],
    ['a 405', failure({ status: 405, detail: 'Method Not Allowed' }), 'route'],
    ['a 405 that names the id', failure({ status: 405, detail: ID }), 'route'],
    ['a 410 that names the id', failure({ status: 410, detail: ID }), 'neither'],
    ['a 403', failure({ status: 403, detail: 'no' }), 'neither'],
    ['a 404 that was not waited for', failure({ kind: 'deadline', detail: ID }), 'neither'],
    ['a 405 that was not waited for', failure({ kind: 'cancelled', status: 405 }), 'neither'],
    ['a broken answer', failure({ kind: 'protocol', status: 404 }), 'neither'],
    ['another error', Object.assign(new Error('no'), { kind: 'http', status: 404, detail: ID }), 'neither'],
    ['nothing', undefined, 'neither'],
  ])('that is %s is of a missing %s', (_what, error, missing) => {
    expect(isMissingRoute(error, [ID])).toBe(missing === 'route')
    expect(isMissingResource(error, [ID])).toBe(missing === 'resource')
  })

  it('names the id in any case', () => {
    expect(isMissingResource(failure({ detail: `no ${ID}` }), ['other', ID.toUpperCase()])).toBe(true)
  })
})

describe('onOptionalRoute', () => {
  const run = (error: unknown) =>
    onOptionalRoute({
      ids: [ID],
      what: 'such thing',
      run: async () => {
        throw error
      },
    })

  it('says what the control plane does not have, instead of the words of its router', async () => {
    expect(await failureOf(run(failure({ detail: 'Not Found' })))).toMatchObject({
      kind: 'unsupported',
      status: 404,
      detail: null,
      message: 'GET /x answered 404: this control plane has no such thing',
    })
  })

  it.each([failure({ detail: ID }), failure({ kind: 'deadline' }), new TypeError('a mistake')])('passes on %s', async (error) => {
    await expect(run(error)).rejects.toBe(error)
  })
})
