import path from 'node:path'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import type { Database } from '../../../src/platform/database/schema.ts'
import { createWorkspace, startTestDatabase, type TestDatabase } from '../support/database.ts'
import { makeDeployment } from './rows.ts'
import { clear } from './world.ts'

/** What tests of the lifecycle share, to be had once the tests begin. */
export interface LifecycleScene {
  readonly database: TestDatabase
  readonly db: Database
  /** Where builds lie. */
  readonly builds: string
  readonly workspaceId: string
  /** A deployment that is there at the start of each test, with nothing else. */
  readonly deploymentId: string
}

/** Sets the scene for all tests of a file: called once, at its top. */
export function setLifecycleScene(): LifecycleScene {
  let database: TestDatabase
  let workspaceId: string
  let deploymentId: string
  const buildsOf = ({ directory }: TestDatabase) => path.join(directory, 'builds')

  beforeAll(async () => {
    database = await startTestDatabase()
    workspaceId = (await createWorkspace(database.db)).id
  })
  beforeEach(async () => {
    await clear(database.db, buildsOf(database))
    deploymentId = await makeDeployment(database.db, workspaceId)
  })
  afterAll(() => database.stop())

  return {
    get database() {
      return database
    },
    get db() {
      return database.db
    },
    get builds() {
      return buildsOf(database)
    },
    get workspaceId() {
      return workspaceId
    },
    get deploymentId() {
      return deploymentId
    },
  }
}
