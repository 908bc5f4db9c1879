import { readFileSync } from 'node:fs'
import type { Clock } from '../../../src/platform/clock.ts'
import { createLog } from '../../../src/platform/log.ts'
import { parseOptions } from '../../../src/platform/options.ts'
import { startPlatform } from '../../../src/platform/platform.ts'
import { DEFAULT_SETTINGS, type Settings } from '../../../src/platform/settings.ts'
import type { ExportSettings } from '../../../src/platform/bulk-export/settings.ts'

/** One node of a cluster: the platform as `main.ts` starts it, with settings that the command line does not have. */
export interface NodeOrders {
  readonly args: readonly string[]
  readonly settings: Partial<Settings>
  readonly exportSettings: Partial<ExportSettings>
  /** Holds by how much the clock is ahead, in milliseconds. */
  readonly clockFile: string | null
  readonly timeScale: number
}

const { args, settings, exportSettings, clockFile, timeScale } = JSON.parse(process.argv[2] ?? '') as NodeOrders
const clock: Clock = {
  now: () => new Date(Date.now() + (clockFile === null ? 0 : Number(readFileSync(clockFile, 'utf8')))),
  scaled: (milliseconds) => Math.max(1, Math.round(milliseconds / timeScale)),
}
const log = createLog(process.env['PLATFORM_LOG_LEVEL'] ?? 'info')
const platform = await startPlatform({
  options: parseOptions(args, process.env),
  settings: { ...DEFAULT_SETTINGS, ...settings },
  exportSettings,
  clock,
  log,
})
process.on('SIGTERM', () => void platform.stop().then(() => process.exit(0)))
process.stdout.write(`${JSON.stringify({ url: platform.url })}\n`)
