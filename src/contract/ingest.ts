import { z } from 'zod'

/** Most runs of one `POST /runs/batch`, posts and patches together, and its largest body in bytes (hosted service). */
export const BATCH_RUNS_MAX = 100
export const BATCH_BYTES_MAX = 20 * 1024 * 1024
/** Largest body of `POST /runs/multipart`, in bytes, before and after it is decompressed: a batch, and room for attachments. */
export const MULTIPART_BYTES_MAX = 64 * 1024 * 1024
/** Most parts of one multipart body. */
export const MULTIPART_PARTS_MAX = 10_000
/** Largest body of `POST /otel/v1/traces`, in bytes. */
export const OTLP_BYTES_MAX = 20 * 1024 * 1024
/** Deepest nesting of a run's JSON. */
export const JSON_DEPTH_MAX = 1000

/** Parts of a multipart body that carry one big field of a run: `post.<run id>.inputs`. */
export const RUN_PART_FIELDS = ['inputs', 'outputs', 'events', 'error', 'extra', 'serialized'] as const
export type RunPartField = (typeof RUN_PART_FIELDS)[number]

/** What a client reads first (`GET /info`): how to send. */
export const SERVICE_INFO = {
  version: '0.1.0',
  license_expiration_time: null,
  batch_ingest_config: {
    use_multipart_endpoint: true,
    size_limit: BATCH_RUNS_MAX,
    size_limit_bytes: BATCH_BYTES_MAX,
    scale_up_qsize_trigger: 1000,
    scale_up_nthreads_limit: 16,
    scale_down_nempty_trigger: 4,
  },
  instance_flags: { gzip_body_enabled: true, zstd_compression_enabled: true },
} as const

export const infoSchema = z.looseObject({
  version: z.string(),
  batch_ingest_config: z.looseObject({ use_multipart_endpoint: z.boolean(), size_limit: z.int(), size_limit_bytes: z.int() }),
  instance_flags: z.looseObject({ gzip_body_enabled: z.boolean(), zstd_compression_enabled: z.boolean() }),
})

/** The body of an acknowledged ingest (202): it is stored for good. */
export const ingestAnswerSchema = z.looseObject({ message: z.string() })

/** The body of a refused ingest: what is wrong, and where (hosted service). Nothing of the request was stored. */
export const ingestErrorSchema = z.looseObject({ error: z.string(), details: z.string() })
export type IngestError = z.infer<typeof ingestErrorSchema>
