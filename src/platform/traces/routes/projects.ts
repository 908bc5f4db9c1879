import { z } from 'zod'
import { toInstant } from '../../../contract/instant.ts'
import { limitSchema, offsetSchema, PAGE_LIMIT_MAX } from '../../../contract/paging.ts'
import { projectCreateSchema, projectPatchSchema, projectSchema } from '../../../contract/tracing-project.ts'
import type { Database } from '../../database/schema.ts'
import { HttpProblem } from '../../http/problem.ts'
import { defineRoute, type Route } from '../../http/route.ts'
import { createProject, deleteProject, listProjects, patchProject, readProject } from '../projects.ts'

const NOT_FOUND = { description: 'The workspace has no such tracing project.' }
const projectPath = z.object({ session_id: z.guid().transform((id) => id.toLowerCase()) })
const flag = z
  .enum(['true', 'false', 'True', 'False'])
  .optional()
  .transform((value) => value?.toLowerCase() === 'true')

const workspaceSchema = z.looseObject({ id: z.guid(), display_name: z.string(), created_at: z.string() })

/** Tracing projects; the wire calls them sessions (hosted service). */
export function projectRoutes(db: Database): Route[] {
  return [
    defineRoute(
      {
        method: 'get',
        path: '/sessions',
        operationId: 'list_sessions',
        summary: 'List tracing projects, the newest first.',
        query: z.object({
          id: z.array(z.guid()).optional(),
          name: z.string().optional(),
          name_contains: z.string().optional(),
          limit: limitSchema.default(PAGE_LIMIT_MAX),
          offset: offsetSchema,
          include_stats: flag,
        }),
        repeated: ['id'],
        answers: { 200: { description: 'The tracing projects.', schema: z.array(projectSchema) } },
      },
      async ({ query, caller }) => ({
        status: 200,
        body: await listProjects(db, caller.workspaceId, {
          ids: query.id ?? [],
          name: query.name,
          nameContains: query.name_contains,
          limit: query.limit,
          offset: query.offset,
          stats: query.include_stats,
        }),
      }),
    ),
    defineRoute(
      {
        method: 'post',
        path: '/sessions',
        operationId: 'create_session',
        summary: 'Make a tracing project.',
        query: z.object({ upsert: flag }),
        body: projectCreateSchema,
        answers: {
          200: { description: 'The tracing project.', schema: projectSchema },
          409: { description: 'The name is taken.' },
        },
      },
      async ({ query, body, caller }) => ({
        status: 200,
        body: await createProject(db, { workspaceId: caller.workspaceId, body, upsert: query.upsert }),
      }),
    ),
    defineRoute(
      {
        method: 'get',
        path: '/sessions/{session_id}',
        operationId: 'read_session',
        summary: 'Read one tracing project.',
        params: projectPath,
        query: z.object({ include_stats: flag }),
        answers: { 200: { description: 'The tracing project.', schema: projectSchema }, 404: NOT_FOUND },
      },
      async ({ params, query, caller }) => ({
        status: 200,
        body: await readProject(db, {
          workspaceId: caller.workspaceId,
          projectId: params.session_id,
          stats: query.include_stats,
        }),
      }),
    ),
    defineRoute(
      {
        method: 'patch',
        path: '/sessions/{session_id}',
        operationId: 'update_session',
        summary: 'Change a tracing project.',
        params: projectPath,
        body: projectPatchSchema,
        answers: {
          200: { description: 'The tracing project.', schema: projectSchema },
          404: NOT_FOUND,
          409: { description: 'The name is taken.' },
        },
      },
      async ({ params, body, caller }) => {
        const ended = body.end_time ? toInstant(body.end_time) : null
        if (body.end_time && ended === null)
          throw new HttpProblem(400, `The end_time is not a time: ${JSON.stringify(body.end_time)}.`)
        const project = await patchProject(db, {
          workspaceId: caller.workspaceId,
          projectId: params.session_id,
          body: { ...body, ended },
        })
        return { status: 200, body: project }
      },
    ),
    defineRoute(
      {
        method: 'delete',
        path: '/sessions/{session_id}',
        operationId: 'delete_session',
        summary: 'Delete a tracing project with its runs.',
        params: projectPath,
        answers: { 200: { description: 'It is gone.' }, 404: NOT_FOUND },
      },
      async ({ params, caller }) => {
        await deleteProject(db, { workspaceId: caller.workspaceId, projectId: params.session_id })
        return { status: 200, body: { message: `Session ${params.session_id} deleted` } }
      },
    ),
    defineRoute(
      {
        method: 'get',
        path: '/workspaces',
        operationId: 'list_workspaces',
        summary: 'The workspace that the key belongs to.',
        answers: { 200: { description: 'A list with one item.', schema: z.array(workspaceSchema) } },
      },
      async ({ caller }) => {
        const row = await db.selectFrom('workspaces').selectAll().where('id', '=', caller.workspaceId).executeTakeFirstOrThrow()
        return { status: 200, body: [{ id: row.id, display_name: row.name, created_at: row.created_at.toISOString() }] }
      },
    ),
  ]
}
