import { z } from 'zod'
import { feedbackCreateSchema, feedbackPatchSchema, feedbackSchema } from '../../../contract/feedback.ts'
import { limitSchema, offsetSchema, PAGE_LIMIT_MAX } from '../../../contract/paging.ts'
import type { Database } from '../../database/schema.ts'
import { HttpProblem } from '../../http/problem.ts'
import { defineRoute, type Route } from '../../http/route.ts'
import { deleteFeedback, listFeedback, patchFeedback, readFeedback, readOneFeedback } from '../feedback.ts'
import { IngestRefusal } from '../ingest/refusal.ts'
import { storeBatch } from '../ingest/store.ts'

const NOT_FOUND = { description: 'The workspace has no such feedback.' }
const feedbackPath = z.object({ feedback_id: z.guid().transform((id) => id.toLowerCase()) })

/** Feedback on runs and tracing projects. Any on a run makes its trace `longlived`. */
export function feedbackRoutes(db: Database): Route[] {
  return [
    defineRoute(
      {
        method: 'post',
        path: '/feedback',
        operationId: 'create_feedback',
        summary: 'Give feedback on a run or a tracing project.',
        body: feedbackCreateSchema,
        answers: {
          200: { description: 'The feedback.', schema: feedbackSchema },
          404: { description: 'The workspace has no tracing project of that id.' },
          409: { description: 'The id is that of feedback on another run.' },
        },
      },
      async ({ body, caller }) => {
        const feedback = readFeedback(body)
        await storeBatch(db, caller.workspaceId, { runs: [], feedback: [feedback] }).catch(asProblem)
        return { status: 200, body: await readOneFeedback(db, { workspaceId: caller.workspaceId, feedbackId: feedback.id }) }
      },
    ),
    defineRoute(
      {
        method: 'get',
        path: '/feedback',
        operationId: 'list_feedback',
        summary: 'List feedback, the newest first.',
        query: z.object({
          run: z.array(z.guid()).optional(),
          session: z.array(z.guid()).optional(),
          key: z.array(z.string()).optional(),
          source: z.array(z.string()).optional(),
          limit: limitSchema.default(PAGE_LIMIT_MAX),
          offset: offsetSchema,
        }),
        repeated: ['run', 'session', 'key', 'source'],
        answers: { 200: { description: 'The feedback.', schema: z.array(feedbackSchema) } },
      },
      async ({ query, caller }) => ({ status: 200, body: await listFeedback(db, caller.workspaceId, query) }),
    ),
    defineRoute(
      {
        method: 'get',
        path: '/feedback/{feedback_id}',
        operationId: 'read_feedback',
        summary: 'Read one piece of feedback.',
        params: feedbackPath,
        answers: { 200: { description: 'The feedback.', schema: feedbackSchema }, 404: NOT_FOUND },
      },
      async ({ params, caller }) => ({
        status: 200,
        body: await readOneFeedback(db, { workspaceId: caller.workspaceId, feedbackId: params.feedback_id }),
      }),
    ),
    defineRoute(
      {
        method: 'patch',
        path: '/feedback/{feedback_id}',
        operationId: 'update_feedback',
        summary: 'Change feedback.',
        params: feedbackPath,
        body: feedbackPatchSchema,
        answers: { 200: { description: 'The feedback.', schema: feedbackSchema }, 404: NOT_FOUND },
      },
      async ({ params, body, caller }) => ({
        status: 200,
        body: await patchFeedback(db, { workspaceId: caller.workspaceId, feedbackId: params.feedback_id, body }),
      }),
    ),
    defineRoute(
      {
        method: 'delete',
        path: '/feedback/{feedback_id}',
        operationId: 'delete_feedback',
        summary: 'Take feedback back.',
        params: feedbackPath,
        answers: { 200: { description: 'It is gone.' }, 404: NOT_FOUND },
      },
      async ({ params, caller }) => {
        await deleteFeedback(db, { workspaceId: caller.workspaceId, feedbackId: params.feedback_id })
        return { status: 200, body: { message: 'Feedback deleted' } }
      },
    ),
  ]
}

/** Feedback comes with runs, or alone like here: then its faults are told as this API tells them. */
function asProblem(error: unknown): never {
  if (error instanceof IngestRefusal && (error.status === 404 || error.status === 409))
    throw new HttpProblem(error.status, error.message)
  throw error
}
