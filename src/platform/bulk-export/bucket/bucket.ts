import { open } from 'node:fs/promises'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import type { DestinationConfig, DestinationCredentials } from '../../../contract/destination.ts'
import { NotAnS3Endpoint } from './bucket-error.ts'
import { type EndpointRules, guardedLookup, judgeEndpoint } from './endpoint.ts'

export interface BucketOptions {
  readonly config: DestinationConfig
  /** Null: the storage client's environment chain. */
  readonly credentials: DestinationCredentials | null
  readonly rules: EndpointRules
  readonly requestLimitMs: number
  readonly connectLimitMs: number
}

export interface Upload {
  readonly file: string
  readonly bytes: number
  readonly key: string
  readonly multipartAboveBytes: number
  readonly uploadPartBytes: number
  /** Called with the id of a multipart upload before its first part is sent; what it throws ends the upload. */
  readonly begun: (uploadId: string) => Promise<void>
  /** Called before the last request, the one that makes the object appear. */
  readonly completing: () => Promise<void>
  readonly signal: AbortSignal
}

/** A customer's bucket. Every request has a body of known length, is repeated by itself a few times, and ends within a bounded time. */
export interface Bucket {
  putText(key: string, text: string): Promise<void>
  upload(upload: Upload): Promise<void>
  /** Size of an object; null when it may not be read, or the store does not say. @throws {Error} when there is no such object. */
  sizeOf(key: string, signal?: AbortSignal): Promise<number | null>
  remove(key: string): Promise<void>
  /**
   * Ends the multipart uploads of a key: the one that is known, and those that the store began although its answer was lost, as far as
   * they may be listed. Never throws: what may not be aborted stays. @returns what hindered the abort of the known one, null when nothing.
   */
  abortUploads(key: string, uploadId: string | null): Promise<unknown>
  close(): void
}

/** What tidying up may take: whoever stops, or begins anew, does not wait for a store that is silent. Milliseconds. */
const TIDY_LIMIT_MS = 5000

/** Times that a request is tried by the client itself before the caller hears of it. */
const ATTEMPTS = 3

/** @throws {ForbiddenEndpoint} for an endpoint that must not be asked. */
export function openBucket({ config, credentials, rules, requestLimitMs, connectLimitMs }: BucketOptions): Bucket {
  const { bucket_name: Bucket, endpoint_url: endpoint, config_kwargs_s3: style } = config
  if (endpoint) judgeEndpoint(endpoint, rules)
  const agent = { keepAlive: true, maxSockets: 16, lookup: guardedLookup(rules) }
  const client = new S3Client({
    region: config.region || 'us-east-1',
    ...(endpoint ? { endpoint, requestChecksumCalculation: 'WHEN_REQUIRED', responseChecksumValidation: 'WHEN_REQUIRED' } : {}),
    // Other stores seldom have a host name for each bucket.
    forcePathStyle: style?.addressing_style === 'path' || (Boolean(endpoint) && style?.addressing_style !== 'virtual'),
    ...(style?.use_accelerate_endpoint ? { useAccelerateEndpoint: true } : {}),
    ...(credentials === null ? {} : { credentials: toIdentity(credentials) }),
    maxAttempts: ATTEMPTS,
    requestHandler: {
      httpAgent: new HttpAgent(agent),
      httpsAgent: new HttpsAgent(agent),
      connectionTimeout: connectLimitMs,
      requestTimeout: requestLimitMs,
      throwOnRequestTimeout: true,
      socketTimeout: requestLimitMs,
    },
    logger: { trace() {}, debug() {}, info() {}, warn() {}, error() {} },
  })
  const extra = config.s3_additional_kwargs ?? {}
  const limit = (signal?: AbortSignal) => {
    // Of all tries of one request together.
    const bound = AbortSignal.timeout(requestLimitMs * (ATTEMPTS + 1))
    return { abortSignal: signal === undefined ? bound : AbortSignal.any([signal, bound]) }
  }
  const put = async (Key: string, Body: Buffer, signal?: AbortSignal) => {
    const answer = await client.send(
      new PutObjectCommand({ Bucket, Key, Body, ContentLength: Body.length, ...extra } as ConstructorParameters<typeof PutObjectCommand>[0]),
      limit(signal),
    )
    if (!answer.ETag) throw new NotAnS3Endpoint('the endpoint answered a write as no S3 store does: without an ETag')
  }

  const uploadParts = async ({ file, bytes, key: Key, uploadPartBytes, begun, completing, signal }: Upload) => {
    const create = new CreateMultipartUploadCommand({ Bucket, Key, ...extra } as { Bucket: string; Key: string })
    const { UploadId, $metadata } = await client.send(create, limit(signal))
    if (!UploadId) throw new NotAnS3Endpoint('the endpoint began a multipart upload without an id')
    const handle = await open(file, 'r')
    try {
      await begun(UploadId)
      const Parts: { ETag: string | undefined; PartNumber: number }[] = []
      // At most 10,000 parts.
      const size = Math.max(uploadPartBytes, Math.ceil(bytes / 9000))
      for (let position = 0; position < bytes; position += size) {
        const Body = Buffer.alloc(Math.min(size, bytes - position))
        const { bytesRead } = await handle.read(Body, 0, Body.length, position)
        if (bytesRead !== Body.length) throw new Error('the file to be uploaded ended early')
        const PartNumber = Parts.length + 1
        const { ETag } = await client.send(
          new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body, ContentLength: Body.length }),
          limit(signal),
        )
        Parts.push({ ETag, PartNumber })
      }
      await completing()
      const done = await client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }), limit(signal))
      // Not by its ETag: that is empty in Ceph's answer.
      if (!done.ETag && !done.Key) throw new NotAnS3Endpoint('the endpoint completed a multipart upload, and does not say which')
      // It was asked for more than once, and the store may have heard each time.
      if (($metadata.attempts ?? 1) > 1) await abortUploads(Key, null)
    } catch (error) {
      await abortUploads(Key, UploadId)
      throw error
    } finally {
      await handle.close()
    }
  }
  const abortUploads = async (Key: string, uploadId: string | null) => {
    const bound = { abortSignal: AbortSignal.timeout(Math.min(TIDY_LIMIT_MS, requestLimitMs * (ATTEMPTS + 1))) }
    const abort = async (UploadId: string | undefined): Promise<unknown> => {
      try {
        await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }), bound)
        return null
      } catch (error) {
        return (error as Error).name === 'NoSuchUpload' ? null : error
      }
    }
    const hindrance = uploadId === null ? null : await abort(uploadId)
    const left = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix: Key }), bound).catch(() => undefined)
    for (const upload of left?.Uploads ?? []) if (upload.Key === Key) await abort(upload.UploadId)
    return hindrance
  }

  return {
    putText: (key, text) => put(key, Buffer.from(text)),
    upload: async (upload) => {
      if (upload.bytes > upload.multipartAboveBytes) return uploadParts(upload)
      const handle = await open(upload.file, 'r')
      try {
        const body = await handle.readFile()
        if (body.length !== upload.bytes) throw new Error('the file to be uploaded has another size than it was written with')
        await upload.completing()
        await put(upload.key, body, upload.signal)
      } finally {
        await handle.close()
      }
    },
    sizeOf: async (Key, signal) => {
      try {
        const { ContentLength } = await client.send(new HeadObjectCommand({ Bucket, Key }), limit(signal))
        return ContentLength ?? null
      } catch (error) {
        const status = (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
        // Reading is optional (specification 4.3): without it there is nothing to compare with.
        if (status === 401 || status === 403 || status === 405 || status === 501) return null
        throw error
      }
    },
    remove: async (Key) => {
      await client.send(new DeleteObjectCommand({ Bucket, Key }), limit())
    },
    abortUploads,
    close: () => client.destroy(),
  }
}

function toIdentity({ access_key_id, secret_access_key, session_token }: DestinationCredentials) {
  return { accessKeyId: access_key_id, secretAccessKey: secret_access_key, ...(session_token ? { sessionToken: session_token } : {}) }
}
