import { z } from 'zod'
import { detailErrorSchema } from '../../../contract/errors.ts'
import { integerTextSchema, PAGE_OFFSET_MAX } from '../../../contract/paging.ts'

const id = z.uuid().transform((text) => text.toLowerCase()).meta({ type: 'string', format: 'uuid' })
export const exportPath = z.object({ export_id: id })
export const exportRunPath = z.object({ export_id: id, run_id: id })
export const destinationPath = z.object({ destination_id: id })
export const scheduleQuery = z.object({ source_bulk_export_id: id })

/** The lists of bulk export have no documented bounds; clients were seen to page by a thousand (hosted service). */
const LIST_MAX = 1000
export const listQuery = z.object({
  limit: integerTextSchema({ min: 1, max: LIST_MAX }).default(LIST_MAX).meta({ type: 'integer', minimum: 1, maximum: LIST_MAX, default: LIST_MAX }),
  offset: integerTextSchema({ min: 0, max: PAGE_OFFSET_MAX }).default(0).meta({ type: 'integer', minimum: 0, default: 0 }),
})

const problem = (description: string) => ({ description, schema: detailErrorSchema })
export const NOT_FOUND = problem('The workspace has no such thing.')
export const PLAN_REFUSED = problem("The workspace's plan does not have bulk export, or the key belongs to another workspace.")
export const BUCKET_REFUSED = problem('The bucket could not be written: one of four causes.')
export const ENDED = problem('The export has ended in another way.')
export const TOO_MANY = problem('The workspace has made too many exports, or has too many schedules.')
