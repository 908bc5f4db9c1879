import { describe, expect, it, test } from 'vitest'
import {
  DESTINATION_ERRORS,
  destinationCreateSchema,
  destinationNotFound,
  destinationPatchSchema,
} from '../../src/contract/destination.ts'

const create = { display_name: 'Team bucket', config: { bucket_name: 'traces' } }
const pair = { access_key_id: 'AKIA0', secret_access_key: 'wJalr/+=' }

const messagesOf = (body: unknown) => destinationCreateSchema.safeParse(body).error?.issues.map(({ message }) => message)
const placesOf = (body: unknown) => destinationCreateSchema.safeParse(body).error?.issues.map(({ path }) => path.join('.'))

describe('a request that creates a destination', () => {
  it('has what it leaves out by default', () => {
    expect(destinationCreateSchema.parse(create)).toEqual({
      destination_type: 's3',
      display_name: 'Team bucket',
      config: { bucket_name: 'traces', prefix: '', include_bucket_in_prefix: false },
    })
  })

  it.each([
    { destination_type: 's3', credentials: null },
    { credentials: pair },
    { credentials: { ...pair, session_token: null } },
    { credentials: { ...pair, session_token: 't'.repeat(16_384) } },
    { display_name: "Ada's bucket-1_a" },
    { display_name: 'a'.repeat(255) },
  ])('may have %j', (changes) => {
    expect(destinationCreateSchema.safeParse({ ...create, ...changes }).success).toBe(true)
  })

  it.each<[Record<string, unknown>, string]>([
    [{ destination_type: 'gcs' }, 'destination_type'],
    [{ display_name: undefined }, 'display_name'],
    [{ display_name: 'a'.repeat(256) }, 'display_name'],
    [{ config: undefined }, 'config'],
    [{ config: {} }, 'config.bucket_name'],
    [{ credentials: { access_key_id: 'a' } }, 'credentials.secret_access_key'],
    [{ credentials: { secret_access_key: 'a' } }, 'credentials.access_key_id'],
    [{ credentials: { ...pair, role: 'x' } }, 'credentials'],
    [{ credentials: { ...pair, access_key_id: 'a'.repeat(513) } }, 'credentials.access_key_id'],
    [{ credentials: { ...pair, secret_access_key: 'a'.repeat(2049) } }, 'credentials.secret_access_key'],
    [{ credentials: { ...pair, session_token: 't'.repeat(16_385) } }, 'credentials.session_token'],
  ])('may not have %j', (changes, place) => {
    expect(placesOf({ ...create, ...changes })).toEqual([place])
  })

  it.each(['a/b', 'a.b', 'ä', 'a\n'])('may not be shown as %j', (display_name) => {
    expect(messagesOf({ ...create, display_name })).toEqual([
      "display_name should have letters, digits, spaces, '-', '_' and ' only",
    ])
  })

  it.each(['a b', 'a\n', 'ä', '\u007f'])('may not have the key %j: it travels in headers', (access_key_id) => {
    expect(messagesOf({ ...create, credentials: { ...pair, access_key_id } })).toEqual([
      'it should have printable characters without spaces only',
    ])
  })
})

describe('the configuration of a destination', () => {
  const withConfig = (changes: Record<string, unknown>) => ({ ...create, config: { bucket_name: 'traces', ...changes } })

  it.each([
    { bucket_name: 'abc' },
    { bucket_name: 'Team_1.traces-eu' },
    { bucket_name: 'a'.repeat(63) },
    { prefix: 'a/b c/ä' },
    { prefix: 'a'.repeat(2048) },
    { region: null, endpoint_url: null },
    { region: 'eu-central-1' },
    { endpoint_url: 'https://storage.example.com' },
    { include_bucket_in_prefix: true },
    {
      s3_additional_kwargs: {
        ServerSideEncryption: 'aws:kms',
        SSEKMSKeyId: 'k',
        BucketKeyEnabled: true,
        StorageClass: 'STANDARD_IA',
      },
    },
    { s3_additional_kwargs: { ACL: 'bucket-owner-full-control', Tagging: 'a=b' } },
    { config_kwargs_s3: { addressing_style: 'path', use_accelerate_endpoint: false } },
  ])('may have %j', (changes) => {
    expect(destinationCreateSchema.parse(withConfig(changes)).config).toMatchObject(changes)
  })

  it.each<[Record<string, unknown>, string]>([
    [{ bucket_name: 'ab' }, 'config.bucket_name'],
    [{ bucket_name: 'a'.repeat(64) }, 'config.bucket_name'],
    [{ bucket_name: '-abc' }, 'config.bucket_name'],
    [{ bucket_name: 'a/b' }, 'config.bucket_name'],
    [{ prefix: 'a'.repeat(2049) }, 'config.prefix'],
    [{ prefix: 'a\nb' }, 'config.prefix'],
    [{ region: 'eu\r\nx' }, 'config.region'],
    [{ region: 'a'.repeat(129) }, 'config.region'],
    [{ endpoint_url: 'a'.repeat(2049) }, 'config.endpoint_url'],
    [{ include_bucket_in_prefix: 'yes' }, 'config.include_bucket_in_prefix'],
    [{ s3_additional_kwargs: { Metadata: {} } }, 'config.s3_additional_kwargs'],
    [{ s3_additional_kwargs: { ACL: 'a\u007f' } }, 'config.s3_additional_kwargs.ACL'],
    [{ config_kwargs_s3: { addressing_style: 'host' } }, 'config.config_kwargs_s3.addressing_style'],
    [{ config_kwargs_s3: { proxies: {} } }, 'config.config_kwargs_s3'],
  ])('may not have %j', (changes, place) => {
    expect(placesOf(withConfig(changes))).toEqual([place])
  })
})

test('nothing but the credentials of a destination can change', () => {
  expect(destinationPatchSchema.parse({ credentials: pair })).toEqual({ credentials: pair })
  for (const body of [{}, { credentials: null }, { credentials: pair, display_name: 'b' }]) {
    expect(destinationPatchSchema.safeParse(body).success).toBe(false)
  }
})

test('the four words of a refused destination are those of the specification', () => {
  expect(Object.keys(DESTINATION_ERRORS)).toEqual([
    'Access denied',
    'Bucket is not valid',
    'Key ID you provided does not exist',
    'Invalid endpoint',
  ])
})

test('what was not found is named', () => {
  expect(destinationNotFound('d')).toBe('Bulk export destination d not found.')
})
