import { createClock } from '../../../../src/platform/clock.ts'
import { connectDatabase } from '../../../../src/platform/database/connect.ts'
import { createExportMetrics } from '../../../../src/platform/bulk-export/metrics.ts'
import type { ExportSettings } from '../../../../src/platform/bulk-export/settings.ts'
import { startExportWorkers } from '../../../../src/platform/bulk-export/workers.ts'
import { createLog } from '../../../../src/platform/log.ts'
import { createSecretBox } from '../../../../src/platform/secrets.ts'

/** A worker in a process of its own, to be killed. Its orders come as JSON on the command line. */
interface Orders {
  readonly databaseUrl: string
  readonly spool: string
  readonly owner: string
  readonly settings: ExportSettings
}

const { databaseUrl, spool, owner, settings } = JSON.parse(process.argv[2] ?? '') as Orders
const log = createLog(process.env['WORKER_LOG_LEVEL'] ?? 'warn')
const db = await connectDatabase({ url: databaseUrl, log })
await startExportWorkers({
  db,
  databaseUrl,
  notifications: { on: () => undefined },
  secretBox: createSecretBox(Buffer.alloc(32, 9)),
  rules: { allowLinkLocal: false },
  owner,
  spool,
  clock: createClock(1),
  settings,
  metrics: createExportMetrics(),
  log,
})
process.stdout.write('ready\n')
