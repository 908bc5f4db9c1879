import { z } from 'zod'
import type { Database } from '../database/schema.ts'
import { HttpProblem } from '../http/problem.ts'
import { defineRoute, type Route } from '../http/route.ts'
import { faultSchema, listedFaultSchema } from './fault.ts'
import type { FaultList } from './fault-list.ts'
import { resetWorkspace } from './reset.ts'

export interface TestingContext {
  readonly db: Database
  readonly faults: FaultList
  /** Forgets the counts of the rate limits. */
  readonly clearCounts: () => Promise<void>
}

/** The routes for those who test against the platform. They are there with `PLATFORM_FAULTS=on` only. */
export function testingRoutes({ db, faults, clearCounts }: TestingContext): Route[] {
  return [
    defineRoute(
      {
        method: 'post',
        path: '/_test/faults',
        operationId: 'addFault',
        summary: 'Adds a fault that requests will meet.',
        body: faultSchema,
        answers: { 201: { description: 'The fault.', schema: listedFaultSchema } },
      },
      async ({ body }) => {
        try {
          return { status: 201, body: faults.add(body) }
        } catch (error) {
          if (error instanceof RangeError) throw new HttpProblem(409, error.message)
          throw error
        }
      },
    ),
    defineRoute(
      {
        method: 'get',
        path: '/_test/faults',
        operationId: 'listFaults',
        summary: 'Lists the faults, those that are used up included.',
        answers: { 200: { description: 'The faults.', schema: z.array(listedFaultSchema) } },
      },
      async () => ({ status: 200, body: faults.list() }),
    ),
    defineRoute(
      {
        method: 'delete',
        path: '/_test/faults',
        operationId: 'clearFaults',
        summary: 'Removes all faults.',
        answers: { 204: { description: 'There are none.' } },
      },
      async () => {
        faults.clear()
        return { status: 204 }
      },
    ),
    defineRoute(
      {
        method: 'delete',
        path: '/_test/faults/{fault_id}',
        operationId: 'removeFault',
        summary: 'Removes a fault.',
        params: z.object({ fault_id: z.guid() }),
        answers: { 204: { description: 'It is gone.' }, 404: { description: 'There is no such fault.' } },
      },
      async ({ params }) => {
        if (!faults.remove(params.fault_id)) throw new HttpProblem(404, `There is no fault ${params.fault_id}.`)
        return { status: 204 }
      },
    ),
    defineRoute(
      {
        method: 'post',
        path: '/_test/reset',
        operationId: 'reset',
        summary: 'Removes all faults, counts of rate limits, and everything that the workspace has.',
        answers: { 204: { description: 'All is as it was at first.' } },
      },
      async ({ caller }) => {
        faults.clear()
        await resetWorkspace(db, caller.workspaceId)
        await clearCounts()
        return { status: 204 }
      },
    ),
  ]
}
