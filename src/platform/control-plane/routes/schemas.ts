import { z } from 'zod'
import { detailErrorSchema } from '../../../contract/errors.ts'
import { DEPLOYMENT_STATUSES, REVISION_STATUSES } from '../../../contract/status.ts'
import { anyOf } from '../../http/validation-error.ts'

/** Any UUID, whatever its version: an id that nobody has is not found, not malformed. Ids compare in lower case. */
export const idSchema = z
  .guid()
  .transform((id) => id.toLowerCase())
  .meta({ type: 'string', format: 'uuid' })

export const deploymentPath = z.object({ deployment_id: idSchema })
export const revisionPath = z.object({ deployment_id: idSchema, revision_id: idSchema })

/** The parts of a comma-separated list in one query parameter. Empty means absent. */
export const partsQuery = z
  .string()
  .nullish()
  .transform((text) => {
    const parts = (text ?? '').split(',').flatMap((part) => part.trim() || [])
    return parts.length === 0 ? null : parts
  })

/** A comma-separated list of known words; an unknown one is a fault that lists the valid ones. */
function wordsQuery<const Values extends readonly string[]>(values: Values) {
  return partsQuery.transform((parts, context): Values[number][] | null => {
    if (parts === null || parts.every((part) => values.includes(part))) return parts
    const message = `Input should be ${anyOf(values.map((value) => `'${value}'`))}, or several of them with commas between`
    context.addIssue({ code: 'custom', message, params: { type: 'enum' } })
    return z.NEVER
  })
}

export const revisionStatusesQuery = wordsQuery(REVISION_STATUSES).meta({
  type: ['string', 'null'],
  description: `Comma-separated: ${REVISION_STATUSES.join(', ')}.`,
})
export const deploymentStatusesQuery = wordsQuery(DEPLOYMENT_STATUSES).meta({
  type: ['string', 'null'],
  description: `Comma-separated: ${DEPLOYMENT_STATUSES.join(', ')}.`,
})

export const idsQuery = partsQuery.pipe(z.array(idSchema).max(100).nullable()).meta({ type: ['string', 'null'], description: 'Comma-separated.' })

/** A boolean in a query. Empty means absent. */
export const booleanQuery = z
  .string()
  .nullish()
  .transform((text, context): boolean | null => {
    if (text === undefined || text === null || text === '') return null
    if (/^(?:true|1|yes|on|t|y)$/i.test(text)) return true
    if (/^(?:false|0|no|off|f|n)$/i.test(text)) return false
    const message = 'Input should be a valid boolean, unable to interpret input'
    context.addIssue({ code: 'custom', message, params: { type: 'bool_parsing' } })
    return z.NEVER
  })
  .meta({ type: ['boolean', 'null'] })

/** Problems of many routes; those of every route are added by the description. */
export const NOT_FOUND = { description: 'The id was not found in the workspace.', schema: detailErrorSchema }
export const BROKEN_RULE = { description: 'A rule of the service is broken; `detail` says which.', schema: detailErrorSchema }
export const CONFLICT = { description: 'It conflicts with what is there.', schema: detailErrorSchema }
