import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { startTestDatabase, type TestDatabase } from '../../support/database.ts'
import { type BucketServer, startBucketServer } from './bucket-server.ts'
import { fillDay } from './runs.ts'
import { createExportWorld, type ExportWorld, type ExportWorldOptions } from './world.ts'

/** What the tests of a file share: a database and a bucket, to be had once the tests begin. */
export interface ExportScene {
  readonly database: TestDatabase
  readonly bucket: BucketServer
  /** A world with so many runs in it, none unless asked for. It ends with the test. */
  makeWorld(options?: SceneWorldOptions): Promise<ExportWorld>
  /** Files of an export, as its record names them, in their order; the bucket has these of it and no others. */
  filesOf(world: ExportWorld, exportId: string): Promise<string[]>
}

export interface SceneWorldOptions extends Partial<ExportWorldOptions> {
  readonly runs?: number
  /** Length of the text in each run's inputs. */
  readonly textBytes?: number
}

/**
 * Sets the scene for all tests of a file: called once, at its top. After each test its worlds end, its exports go and the bucket is whole
 * again; what a file does after each test itself comes before that.
 */
export function setExportScene(): ExportScene {
  const worlds: ExportWorld[] = []
  let database: TestDatabase
  let bucket: BucketServer

  beforeAll(async () => {
    ;[database, bucket] = await Promise.all([startTestDatabase(), startBucketServer()])
  })
  afterEach(async () => {
    // Before the worlds end, so that none waits for a bucket that is broken; and again, so that nothing of their end is seen later.
    bucket.clear()
    await Promise.all(worlds.splice(0).map((world) => world.stop()))
    bucket.clear()
    await database.db.deleteFrom('bulk_exports').execute()
  })
  afterAll(async () => {
    await bucket.stop()
    await database.stop()
  })

  return {
    get database() {
      return database
    },
    get bucket() {
      return bucket
    },
    makeWorld: async ({ runs = 0, textBytes, ...options } = {}) => {
      const world = await createExportWorld({ database, bucket, ...options })
      worlds.push(world)
      if (runs > 0) await fillDay(database.db, world, { count: runs, textBytes })
      return world
    },
    filesOf: async (world, exportId) => {
      const named = (await world.readRuns(exportId))
        .flatMap((run) => run.metadata.result?.exported_files ?? [])
        .map((file) => file.slice(bucket.bucket.length + 1))
      expect((await bucket.keys()).filter((key) => key.includes(exportId))).toEqual(named.toSorted())
      return named.map((key) => bucket.fileOf(key))
    },
  }
}
