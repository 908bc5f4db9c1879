import { type Area, chosen, documented, inferred, observed, specification } from './evidence.ts'

const described = documented('main API description')
const named = specification('4.3')
const unknownId = chosen('an id that the workspace does not have is not found')
const planRefused = chosen('the plan has no bulk export (specification 1.5 names the plans, not the refusal)')
const bucketRefused = documented('guides', 'specification 7.2 has the four causes, not the status')

const PAGE = [[inferred('other tools', 'nothing is documented'), ['limit', 'offset']]] as const

/** Specification 2.6 to 2.9, 3.2, 4.3 and 7.2 to 7.6. */
export const BULK_EXPORT: Area = {
  title: 'Bulk export',
  routes: {
    'POST /api/v1/bulk-exports/destinations': { route: named, answers: { 200: described, 400: bucketRefused, 403: planRefused } },
    'GET /api/v1/bulk-exports/destinations': { route: described, answers: { 200: described }, query: PAGE },
    'GET /api/v1/bulk-exports/destinations/{destination_id}': { route: described, answers: { 200: described, 404: unknownId } },
    'PATCH /api/v1/bulk-exports/destinations/{destination_id}': {
      route: described,
      answers: { 200: described, 400: bucketRefused, 403: planRefused, 404: unknownId },
    },
    'POST /api/v1/bulk-exports': {
      route: named,
      answers: {
        200: described,
        403: planRefused,
        404: unknownId,
        429: documented('guides', '250 creations an hour, 200 schedules: of the cloud offering only'),
      },
    },
    'GET /api/v1/bulk-exports': { route: named, answers: { 200: described }, query: PAGE },
    'GET /api/v1/bulk-exports/runs': {
      route: described,
      answers: { 200: described, 404: unknownId },
      query: [...PAGE, [described, ['source_bulk_export_id']]],
    },
    'GET /api/v1/bulk-exports/{export_id}': { route: named, answers: { 200: described, 404: unknownId } },
    'PATCH /api/v1/bulk-exports/{export_id}': {
      route: named,
      answers: { 200: described, 404: unknownId, 409: chosen('an export that has ended in another way cannot be cancelled') },
    },
    'GET /api/v1/bulk-exports/{export_id}/runs': { route: named, answers: { 200: described, 404: unknownId } },
    'GET /api/v1/bulk-exports/{export_id}/runs/{run_id}': { route: described, answers: { 200: described, 404: unknownId } },
  },
  objects: {
    destinationCreateSchema: {
      title: 'Body of a new destination',
      fields: [[specification('2.6'), ['destination_type', 'display_name', 'config', 'credentials']]],
    },
    destinationConfigSchema: {
      title: 'Config of a destination',
      fields: [
        [specification('2.6'), ['bucket_name', 'prefix', 'region', 'endpoint_url']],
        [
          specification('2.6', 'false by default, as it says there; the hosted service has turned to true since'),
          ['include_bucket_in_prefix'],
        ],
        [
          described,
          [
            's3_additional_kwargs',
            'config_kwargs_s3',
            'config_kwargs_s3.addressing_style',
            'config_kwargs_s3.use_accelerate_endpoint',
          ],
        ],
        [
          chosen('a free object in the description; these names of the storage client have a meaning for files that are written'),
          [
            's3_additional_kwargs.ServerSideEncryption',
            's3_additional_kwargs.SSEKMSKeyId',
            's3_additional_kwargs.BucketKeyEnabled',
            's3_additional_kwargs.StorageClass',
            's3_additional_kwargs.ACL',
            's3_additional_kwargs.Tagging',
          ],
        ],
      ],
    },
    destinationCredentialsSchema: {
      title: 'Credentials',
      fields: [[specification('2.6'), ['access_key_id', 'secret_access_key', 'session_token']]],
    },
    destinationPatchSchema: { title: 'New credentials', fields: [[described, ['credentials']]] },
    destinationSchema: {
      title: 'Destination',
      fields: [
        [specification('2.6'), ['id', 'display_name', 'destination_type', 'config']],
        [
          specification('2.6'),
          ['config.bucket_name', 'config.prefix', 'config.region', 'config.endpoint_url', 'config.include_bucket_in_prefix'],
        ],
        [
          described,
          ['tenant_id', 'config.s3_additional_kwargs', 'config.config_kwargs_s3', 'credentials_keys', 'created_at', 'updated_at'],
        ],
      ],
    },
    bulkExportCreateSchema: {
      title: 'Body of a new export',
      fields: [
        [
          specification('2.7'),
          [
            'bulk_export_destination_id',
            'session_id',
            'start_time',
            'end_time',
            'filter',
            'export_fields',
            'interval_hours',
            'format_version',
          ],
        ],
        [described, ['format']],
        [documented('guides', 'zstandard by default; the description says gzip'), ['compression']],
      ],
    },
    bulkExportPatchSchema: { title: 'Body of a cancellation', fields: [[specification('3.2'), ['status']]] },
    bulkExportSchema: {
      title: 'BulkExport',
      fields: [
        [
          specification('2.7'),
          [
            'id',
            'bulk_export_destination_id',
            'session_id',
            'start_time',
            'end_time',
            'filter',
            'export_fields',
            'interval_hours',
            'format_version',
            'source_bulk_export_id',
          ],
        ],
        [specification('4.3'), ['status', 'created_at']],
        [described, ['tenant_id', 'format', 'compression', 'updated_at', 'finished_at']],
        [documented('guides', 'always false: exports of experiments are not offered here'), ['all_experiments']],
        [chosen('why an export ended, in one sentence'), ['status_message']],
        [chosen('how far an export is: the hosted service has no progress'), ['progress']],
      ],
    },
    exportProgressSchema: {
      title: 'Progress of an export',
      fields: [
        [
          chosen('sums over its export runs'),
          ['runs_total', 'runs_done', 'rows_exported', 'bytes_exported', 'files_exported', 'late_rows', 'estimated_seconds_left'],
        ],
      ],
    },
    bulkExportRunSchema: {
      title: 'BulkExportRun',
      fields: [
        [
          specification('2.8'),
          ['id', 'status', 'created_at', 'errors', 'metadata.result.latest_cursor', 'metadata.result.exported_files'],
        ],
        [
          specification('2.8', 'the hosted service has it at metadata.result.rows_written, as this one does too'),
          ['rows_exported'],
        ],
        [described, ['bulk_export_id', 'retry_number', 'updated_at', 'start_time', 'end_time', 'finished_at', 'metadata']],
        [
          described,
          ['metadata.prefix', 'metadata.start_time', 'metadata.end_time', 'metadata.execution_backend', 'metadata.result'],
        ],
        [described, ['metadata.result.rows_written', 'metadata.result.export_path', 'metadata.result.pending_upload']],
        [observed('real answers', 'of newer versions of the service'), ['session_id']],
        [chosen('what a reader of an export asks for next'), ['bytes_exported']],
        [chosen('rows that came when their window had been exported'), ['late_rows']],
      ],
    },
    pendingUploadSchema: {
      title: 'Upload under way',
      fields: [[described, ['target_cursor', 'file_path', 'rows_count']]],
    },
  },
}
