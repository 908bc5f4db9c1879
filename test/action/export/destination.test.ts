import { createHash } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { destinationName, pathOfExport, provideDestination } from '../../../src/action/export/destination.ts'
import { DESTINATION_REMEDIES } from '../../../src/action/export/remedy.ts'
import type { BucketWish, ExportWish } from '../../../src/action/export/wish.ts'
import { ERROR_CODES } from '../../../src/action/report/error-codes.ts'
import type { BulkExports } from '../../../src/client/bulk-export.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { BUCKET, destinationAnswer, exportDeps, fakeBulkExports, NEVER, WISH } from './support.ts'

const CREDENTIALS = { access_key_id: 'id', secret_access_key: 'secret' }
const NAME = destinationName(BUCKET)
const SENT = 'GET /v2/deployments was sent once.'

function provide(destination: ExportWish['destination'], api: Partial<BulkExports> = {}, dryRun = false) {
  const fake = fakeBulkExports(api)
  const deps = exportDeps(fake)
  return {
    api: fake,
    deps,
    found: provideDestination({ wish: { ...WISH, destination }, dryRun, api: fake, signal: NEVER, deps }),
  }
}

const failing = (thrown: unknown) => vi.fn(async () => Promise.reject(thrown))

describe('a destination by its id', () => {
  it('is read, and nothing else', async () => {
    const { api, deps, found } = provide({ id: 'd' })
    expect(await found).toEqual(destinationAnswer())
    expect(api.getDestination).toHaveBeenCalledExactlyOnceWith('d', NEVER)
    expect(api.listDestinations).not.toHaveBeenCalled()
    expect(deps.lines).toEqual([])
  })

  it('has to exist', async () => {
    const error = httpFailure(404, { detail: 'Not found.' })
    await expect(provide({ id: 'd' }, { getDestination: failing(error) }).found).rejects.toMatchObject({
      code: 'E_NOT_FOUND',
      message: 'Reading the destination d failed: GET /v2/deployments answered 404: Not found.',
      tried: SENT,
      next: 'Check export-destination-id and workspace-id, or set export-bucket to have a destination created.',
      cause: error,
    })
  })

  it('is not called absent when it could not be read', async () => {
    await expect(provide({ id: 'd' }, { getDestination: failing(httpFailure(500)) }).found).rejects.toMatchObject({
      code: 'E_UNAVAILABLE',
      message: 'Reading the destination d failed: GET /v2/deployments answered 500.',
      next: ERROR_CODES.E_UNAVAILABLE.remedy,
    })
  })
})

describe('the name of a destination', () => {
  const hash = (...parts: string[]) => createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 10)

  it.each<[BucketWish['config'], string]>([
    [{ bucket_name: 'lake', prefix: '' }, `deploy-agent-server lake ${hash('lake', '', '', '')}`],
    [{ bucket_name: 'lake', prefix: 'a/b', region: 'eu' }, `deploy-agent-server lake a b ${hash('lake', 'a/b', 'eu', '')}`],
    [
      { bucket_name: 'my.lake_1', prefix: 'a. ~/ü', endpoint_url: 'https://x' },
      `deploy-agent-server my lake_1 a ${hash('my.lake_1', 'a. ~/ü', '', 'https://x')}`,
    ],
    [
      { bucket_name: 'lake', prefix: 'x'.repeat(100) },
      `deploy-agent-server lake ${'x'.repeat(75)} ${hash('lake', 'x'.repeat(100), '', '')}`,
    ],
  ])('of %j', (config, name) => expect(destinationName({ config })).toBe(name))
})

describe('a destination that is not there', () => {
  it('is created, with no more than was set', async () => {
    const listDestinations = vi.fn(async () => [destinationAnswer({ id: 'other' })])
    const createDestination = vi.fn(async () => destinationAnswer({ id: 'new' }))
    const { deps, found } = provide(BUCKET, { listDestinations, createDestination })
    expect((await found)?.id).toBe('new')
    expect(createDestination.mock.calls).toStrictEqual([
      [
        {
          body: {
            destination_type: 's3',
            display_name: NAME,
            config: { bucket_name: 'lake', prefix: 'a/b', region: 'eu-central-1', include_bucket_in_prefix: false },
          },
          known: ['other'],
          signal: NEVER,
        },
      ],
    ])
    expect(deps.lines).toEqual([`Created the destination '${NAME}' (new).`])
  })

  it('is created with credentials', async () => {
    const { api, found } = provide({ ...BUCKET, credentials: CREDENTIALS })
    await found
    expect(vi.mocked(api.createDestination).mock.calls[0]?.[0].body.credentials).toEqual(CREDENTIALS)
    expect(api.updateCredentials).not.toHaveBeenCalled()
  })

  it('stays so in a dry run', async () => {
    const { api, deps, found } = provide(BUCKET, {}, true)
    expect(await found).toBeNull()
    expect(api.createDestination).not.toHaveBeenCalled()
    expect(deps.lines).toEqual([])
  })

  it('is not created when the list cannot be read', async () => {
    const { api, found } = provide(BUCKET, { listDestinations: failing(httpFailure(500)) })
    await expect(found).rejects.toMatchObject({
      code: 'E_UNAVAILABLE',
      message: 'Listing the export destinations failed: GET /v2/deployments answered 500.',
    })
    expect(api.createDestination).not.toHaveBeenCalled()
  })

  const doing = "Creating the destination for the bucket 'lake' failed: GET /v2/deployments"
  const refused = { code: 'E_DESTINATION', tried: SENT } as const
  it.each([
    [
      'by a known cause',
      httpFailure(400, { detail: 'Access denied' }),
      { ...refused, message: `${doing} answered 400: Access denied.`, next: DESTINATION_REMEDIES['Access denied'] },
    ],
    [
      'by a cause in the text of the answer',
      httpFailure(400, { excerpt: '<b>Bucket is not valid</b>' }),
      {
        ...refused,
        message: `${doing} answered 400.\nThe answer began with: <b>Bucket is not valid</b>`,
        next: DESTINATION_REMEDIES['Bucket is not valid'],
      },
    ],
    [
      'by another cause',
      httpFailure(400, { detail: 'The moon is full.', excerpt: 'Access denied' }),
      { ...refused, message: `${doing} answered 400: The moon is full.`, next: ERROR_CODES.E_DESTINATION.remedy },
    ],
    [
      'without a word',
      httpFailure(400),
      { ...refused, message: `${doing} answered 400.`, next: ERROR_CODES.E_DESTINATION.remedy },
    ],
    [
      'as a body that cannot be read',
      httpFailure(422, { detail: 'Access denied' }),
      { code: 'E_VALIDATION', message: `${doing} answered 422: Access denied.` },
    ],
    ['by nobody, without an answer', requestFailure(), { code: 'E_UNAVAILABLE', message: `${doing} got no answer.` }],
    [
      'by something else than the service',
      httpFailure(400, { kind: 'protocol', detail: 'Access denied' }),
      { code: 'E_PROTOCOL', message: `${doing} answered 400: Access denied.` },
    ],
  ])('may be refused %s', async (_, error, failure) => {
    await expect(provide(BUCKET, { createDestination: failing(error) }).found).rejects.toMatchObject({ ...failure, cause: error })
  })
})

describe('a destination that is there', () => {
  const named = (changes: Record<string, unknown>) => destinationAnswer({ display_name: NAME, ...changes })
  const list = (...all: ReturnType<typeof named>[]) => ({ listDestinations: vi.fn(async () => all) })

  it('is found by its name alone', async () => {
    const { deps, found } = provide(
      BUCKET,
      list(destinationAnswer({ id: 'a' }), named({ id: 'b' }), destinationAnswer({ id: 'c' })),
    )
    expect((await found)?.id).toBe('b')
    expect(deps.lines).toEqual([`Found the destination '${NAME}' (b).`])
  })

  it.each([
    ['the oldest', [named({ id: 'a', created_at: '2026-01-02' }), named({ id: 'b', created_at: '2026-01-01' })]],
    ['the first by id where times are not told', [named({ id: 'c' }), named({ id: 'b' }), named({ id: 'd' })]],
  ])('of several is %s', async (_, all) => {
    expect((await provide(BUCKET, list(...all)).found)?.id).toBe('b')
    expect((await provide(BUCKET, list(...all.toReversed())).found)?.id).toBe('b')
  })

  it('gets the credentials that were set', async () => {
    const { api, deps, found } = provide({ ...BUCKET, credentials: CREDENTIALS }, list(named({})))
    await found
    expect(api.updateCredentials).toHaveBeenCalledExactlyOnceWith({ id: 'd', credentials: CREDENTIALS, signal: NEVER })
    expect(deps.journal.notes).toEqual([])
  })

  it('keeps its credentials in a dry run', async () => {
    const { api, found } = provide({ ...BUCKET, credentials: CREDENTIALS }, list(named({})), true)
    expect((await found)?.id).toBe('d')
    expect(api.updateCredentials).not.toHaveBeenCalled()
  })

  it('keeps its credentials where the service cannot change them', async () => {
    const updateCredentials = failing(httpFailure(405, { kind: 'unsupported' }))
    const { deps, found } = provide({ ...BUCKET, credentials: CREDENTIALS }, { ...list(named({})), updateCredentials })
    expect((await found)?.id).toBe('d')
    expect(deps.journal.notes).toEqual([
      'This service cannot change the credentials of a destination: d keeps those that it was made with.',
    ])
  })

  it.each([
    [httpFailure(400, { detail: 'Access denied' }), 'E_DESTINATION', 'GET /v2/deployments answered 400: Access denied.'],
    [httpFailure(500), 'E_UNAVAILABLE', 'GET /v2/deployments answered 500.'],
  ])('may refuse them: %s', async (error, code, message) => {
    const { deps, found } = provide(
      { ...BUCKET, credentials: CREDENTIALS },
      { ...list(named({})), updateCredentials: failing(error) },
    )
    await expect(found).rejects.toMatchObject({
      code,
      message: `Bringing the credentials of the destination '${NAME}' (d) up to date failed: ${message}`,
    })
    expect(deps.journal.notes).toEqual([])
  })

  it('passes on what is none of the service', async () => {
    const updateCredentials = failing(Object.assign(new Error('broken'), { kind: 'unsupported' }))
    const { found } = provide({ ...BUCKET, credentials: CREDENTIALS }, { ...list(named({})), updateCredentials })
    await expect(found).rejects.toThrow('broken')
  })
})

describe('the path of an export', () => {
  it.each([
    ['', undefined, 's3://lake/export_id=…/'],
    ['', false, 's3://lake/export_id=…/'],
    ['a', null, 's3://lake/a/export_id=…/'],
    ['/a//b/', false, 's3://lake/a/b/export_id=…/'],
    ['a/b', true, 's3://lake/lake/a/b/export_id=…/'],
  ])('with the prefix "%s" and include_bucket_in_prefix %s', (prefix, include_bucket_in_prefix, path) => {
    const answer = destinationAnswer({ config: { bucket_name: 'lake', prefix, include_bucket_in_prefix } })
    expect(pathOfExport(answer, undefined)).toBe(path)
    expect(pathOfExport(answer, 'e')).toBe(path.replace('…', 'e'))
  })
})
