import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { Database } from '../../src/platform/database/schema.ts'

/** A tracing project, and the workspace that it is in. */
export interface Project {
  readonly workspaceId: string
  readonly projectId: string
}

/** Makes a project, in a workspace of its own unless one is given. */
export async function createProject(db: Database, workspaceId?: string): Promise<Project> {
  const project = { workspaceId: workspaceId ?? randomUUID(), projectId: randomUUID() }
  if (workspaceId === undefined)
    await sql`insert into workspaces (id, name, plan) values (${project.workspaceId}, 'bench', 'enterprise')`.execute(db)
  await sql`
    insert into tracing_projects (id, workspace_id, name) values (${project.projectId}, ${project.workspaceId}, 'bench')`.execute(
    db,
  )
  return project
}
