import { z } from 'zod'

export const DESTINATION_NAME_PATTERN = /^[a-zA-Z0-9\-_ ']+$/
export const BUCKET_NAME_MIN = 3
export const BUCKET_NAME_MAX = 63
export const PREFIX_MAX = 2048
export const ENDPOINT_URL_MAX = 2048

/** Extra arguments of writing requests that a destination may carry, by the storage client's own names. */
export const WRITE_ARGUMENTS = ['ServerSideEncryption', 'SSEKMSKeyId', 'BucketKeyEnabled', 'StorageClass', 'ACL', 'Tagging'] as const

const name = z.string().min(1).max(255).regex(DESTINATION_NAME_PATTERN, "display_name should have letters, digits, spaces, '-', '_' and ' only")
/** What becomes a part of object keys or of a header: no control characters. */
const plain = (max: number) => z.string().max(max).regex(/^[^\0-\x1f\x7f]*$/, 'it should not have control characters')

export const destinationConfigSchema = z.object({
  bucket_name: z
    .string()
    .min(BUCKET_NAME_MIN)
    .max(BUCKET_NAME_MAX)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'bucket_name should have letters, digits, dots, hyphens and underscores only'),
  prefix: plain(PREFIX_MAX).default(''),
  region: plain(128).nullish(),
  endpoint_url: z.string().max(ENDPOINT_URL_MAX).nullish(),
  include_bucket_in_prefix: z.boolean().default(false),
  s3_additional_kwargs: z
    .strictObject({
      ServerSideEncryption: plain(64).optional(),
      SSEKMSKeyId: plain(2048).optional(),
      BucketKeyEnabled: z.boolean().optional(),
      StorageClass: plain(64).optional(),
      ACL: plain(64).optional(),
      Tagging: plain(2048).optional(),
    } satisfies Record<(typeof WRITE_ARGUMENTS)[number], z.ZodType>)
    .nullish(),
  config_kwargs_s3: z
    .strictObject({ addressing_style: z.enum(['auto', 'virtual', 'path']).optional(), use_accelerate_endpoint: z.boolean().optional() })
    .nullish(),
})
export type DestinationConfig = z.infer<typeof destinationConfigSchema>

/** Values travel in headers and signatures: printable, no spaces. */
const credential = (max: number) => z.string().min(1).max(max).regex(/^[\x21-\x7e]+$/, 'it should have printable characters without spaces only')

export const destinationCredentialsSchema = z.strictObject({
  access_key_id: credential(512),
  secret_access_key: credential(2048),
  session_token: credential(16_384).nullish(),
})
export type DestinationCredentials = z.infer<typeof destinationCredentialsSchema>

/** The body of `POST /api/v1/bulk-exports/destinations` (specification 2.6). */
export const destinationCreateSchema = z.object({
  destination_type: z.literal('s3').default('s3'),
  display_name: name,
  config: destinationConfigSchema,
  credentials: destinationCredentialsSchema.nullish(),
})
export type DestinationCreate = z.infer<typeof destinationCreateSchema>

/** The body of `PATCH /api/v1/bulk-exports/destinations/{destination_id}`: new credentials; the rest of a destination does not change. */
export const destinationPatchSchema = z.strictObject({ credentials: destinationCredentialsSchema })

/** A destination, as answered. Of credentials the names only, never a value. */
export const destinationSchema = z.looseObject({
  id: z.uuid(),
  tenant_id: z.uuid(),
  display_name: z.string(),
  destination_type: z.literal('s3'),
  config: z.looseObject({
    bucket_name: z.string(),
    prefix: z.string(),
    region: z.string().nullable(),
    endpoint_url: z.string().nullable(),
    include_bucket_in_prefix: z.boolean(),
    s3_additional_kwargs: z.record(z.string(), z.unknown()).nullable(),
    config_kwargs_s3: z.record(z.string(), z.unknown()).nullable(),
  }),
  credentials_keys: z.array(z.string()),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
})
export type Destination = z.infer<typeof destinationSchema>

/** Why a destination was refused (specification 7.2): the words, and what they mean. */
export const DESTINATION_ERRORS = {
  'Access denied': 'the key pair lacks permission on the bucket or operation',
  'Bucket is not valid': 'the bucket does not exist or cannot be written',
  'Key ID you provided does not exist': 'the access key id is not a valid key',
  'Invalid endpoint':
    'endpoint_url is not an S3-compatible endpoint; for the original object-storage provider leave out endpoint_url and give the region',
} as const
export type DestinationError = keyof typeof DESTINATION_ERRORS

export function destinationNotFound(destinationId: string): string {
  return `Bulk export destination ${destinationId} not found.`
}
