import { z } from 'zod'
import {
  LOG_LIMIT_DEFAULT,
  LOG_LIMIT_MAX,
  LOG_LIMIT_MIN,
  logLevelSchema,
  logOrderSchema,
  logsResponseSchema,
  type LogType,
  logTypeSchema,
} from '../../../contract/log.ts'
import { integerTextSchema } from '../../../contract/paging.ts'
import type { Database } from '../../database/schema.ts'
import { defineRoute, type Route } from '../../http/route.ts'
import type { Caller } from '../../workspaces/authenticate.ts'
import { readDeployment } from '../deployment-reads.ts'
import { readRevisionLog } from '../logs.ts'
import { readRevision } from '../revisions.ts'
import { deploymentPath, NOT_FOUND, revisionPath } from './schemas.ts'

const limitBody = z
  .int()
  .min(LOG_LIMIT_MIN)
  .max(LOG_LIMIT_MAX)
  .nullish()
  .transform((limit) => limit ?? LOG_LIMIT_DEFAULT)
const limitQuery = integerTextSchema({ min: LOG_LIMIT_MIN, max: LOG_LIMIT_MAX })
  .default(LOG_LIMIT_DEFAULT)
  .meta({ type: 'integer', minimum: LOG_LIMIT_MIN, maximum: LOG_LIMIT_MAX, default: LOG_LIMIT_DEFAULT })
const time = z.iso.datetime({ offset: true, local: true }).nullish()
/** The id of a line; anything else was not given by us. */
const offset = z.string().regex(/^\d{0,18}$/, 'offset should be a next_offset of this log').nullish()

const filter = {
  order: logOrderSchema.nullish(),
  offset,
  level: logLevelSchema.nullish(),
  query: z.string().max(1000).nullish(),
  start_time: time,
  end_time: time,
}

const ANSWERS = {
  200: { description: 'One page of the log.', schema: logsResponseSchema },
  404: NOT_FOUND,
}

type Filter = { [Key in keyof typeof filter]?: z.output<(typeof filter)[Key]> }

/** Body of the older routes; nothing in it is required. */
const bodySchema = z
  .object({ limit: limitBody, ...filter })
  .nullish()
  .transform((body) => body ?? { limit: LOG_LIMIT_DEFAULT })

/** The logs of a revision (hosted service): the present route, and the older ones that the ecosystem's command line still calls. */
export function logRoutes(db: Database): Route[] {
  const read = async (revisionId: string, request: Filter & { type: LogType; limit: number }) => {
    const body = await readRevisionLog(db, {
      revisionId,
      type: request.type,
      order: request.order ?? 'asc',
      limit: request.limit,
      offset: request.offset || null,
      level: request.level ?? null,
      contains: request.query || null,
      from: request.start_time ? asUtc(request.start_time) : null,
      to: request.end_time ? asUtc(request.end_time) : null,
    })
    return { status: 200, body }
  }
  const find = async ({ params, caller }: { params: z.output<typeof revisionPath>; caller: Caller }) => {
    await readDeployment(db, { workspaceId: caller.workspaceId, deploymentId: params.deployment_id })
    const revision = await readRevision(db, { deploymentId: params.deployment_id, revisionId: params.revision_id })
    return revision.id
  }
  return [
    defineRoute(
      {
        method: 'get',
        path: '/v2/deployments/{deployment_id}/revisions/{revision_id}/logs',
        operationId: 'readRevisionLogs',
        summary: 'Reads the build or deploy log of a revision.',
        params: revisionPath,
        query: z.object({ type: logTypeSchema, limit: limitQuery, ...filter }),
        answers: ANSWERS,
      },
      async (input) => read(await find(input), input.query),
    ),
    ...(['build', 'deploy'] as const).map((type) =>
      defineRoute(
        {
          method: 'post',
          path: `/v1/projects/{deployment_id}/revisions/{revision_id}/${type}_logs`,
          operationId: `readRevision${type === 'build' ? 'Build' : 'Deploy'}LogsV1`,
          summary: `Reads the ${type} log of a revision, in the older form.`,
          params: revisionPath,
          body: bodySchema,
          answers: ANSWERS,
        },
        async (input) => read(await find(input), { ...input.body, type }),
      ),
    ),
    defineRoute(
      {
        method: 'post',
        path: '/v1/projects/{deployment_id}/deploy_logs',
        operationId: 'readDeploymentLogsV1',
        summary: 'Reads the deploy log of the revision that serves, or of the latest one while none does, in the older form.',
        params: deploymentPath,
        body: bodySchema,
        answers: ANSWERS,
      },
      async ({ params, body, caller }) => {
        const deployment = await readDeployment(db, { workspaceId: caller.workspaceId, deploymentId: params.deployment_id })
        const revisionId = deployment.active_revision_id ?? deployment.latest_revision_id
        if (revisionId === null) return { status: 200, body: { logs: [], next_offset: null } }
        return read(revisionId, { ...body, type: 'deploy' })
      },
    ),
  ]
}

/** A time without a zone is UTC, as everywhere in the service. */
function asUtc(time: string): Date {
  return new Date(/(?:z|[+-]\d\d:?\d\d)$/i.test(time) ? time : `${time}Z`)
}
