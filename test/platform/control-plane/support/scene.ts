import { afterAll, beforeAll, beforeEach } from 'vitest'
import { createControlPlane, type Seen, type TestControlPlane } from '../../support/control-plane.ts'
import { createWorkspace, startTestDatabase, type TestDatabase, type TestWorkspace } from '../../support/database.ts'

/** An id that nothing has. */
export const NOBODY = '11111111-1111-1111-1111-111111111111'

/** A control plane that the tests of a file share, and a workspace of its own for each test. */
export interface PlaneScene {
  readonly database: TestDatabase
  readonly plane: TestControlPlane
  readonly workspace: TestWorkspace
  /** Asks with the key of the workspace. */
  ask: ReturnType<TestControlPlane['as']>
  /** Creates a deployment. */
  post(body: unknown): Promise<Seen>
  /** Changes a deployment. */
  patch(id: string, body: unknown): Promise<Seen>
  /** The body of a deployment. */
  read(id: string): Promise<Seen['body']>
  /** Revisions of a deployment, newest first. */
  revisionsOf(id: string): Promise<{ id: string }[]>
}

/** Sets the scene for all tests of a file: called once, at its top. */
export function setPlaneScene(): PlaneScene {
  let database: TestDatabase
  let plane: TestControlPlane
  let workspace: TestWorkspace

  beforeAll(async () => {
    database = await startTestDatabase()
    plane = createControlPlane({ db: database.db })
  })
  beforeEach(async () => {
    workspace = await createWorkspace(database.db)
  })
  afterAll(() => database.stop())

  const ask: PlaneScene['ask'] = (request) => plane.ask({ ...request, key: workspace.key })
  return {
    get database() {
      return database
    },
    get plane() {
      return plane
    },
    get workspace() {
      return workspace
    },
    ask,
    post: (body) => ask({ method: 'POST', path: '/v2/deployments', body }),
    patch: (id, body) => ask({ method: 'PATCH', path: `/v2/deployments/${id}`, body }),
    read: async (id) => (await ask({ path: `/v2/deployments/${id}` })).body,
    revisionsOf: async (id) => (await ask({ path: `/v2/deployments/${id}/revisions` })).body.resources,
  }
}

/** Where a 422 sees faults, and of which type, as `body.name: missing`. */
export function placesOf(seen: Seen): string[] {
  return seen.body.detail.map(({ loc, type }: { loc: (string | number)[]; type: string }) => `${loc.join('.')}: ${type}`)
}

/** The text of a 400 that says which rule of a source a request breaks. */
export function sourceRule(text: string): string {
  return `Source configuration error: ${text}.`
}
