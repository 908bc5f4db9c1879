import { describe, expect, it } from 'vitest'
import { DEFAULT_EXPORT_SETTINGS, EXPORT_VARIABLES, readExportSettings } from '../../../src/platform/bulk-export/settings.ts'

const HOUR = 3_600_000

describe('the limits of bulk export', () => {
  it('are those of the specification where nothing else is said', () => {
    expect(DEFAULT_EXPORT_SETTINGS).toMatchObject({
      retries: 20,
      retryDelayMs: 30_000,
      runLimitMs: 4 * HOUR,
      exportLimitMs: 72 * HOUR,
      runsAtOnce: 45,
      exportsAtOnce: 15,
      lateArrivalMs: 600_000,
    })
    expect(readExportSettings({ PLATFORM_EXPORT_RETRIES: '', PLATFORM_PORT: '1' })).toEqual({})
  })

  it('are set by the environment, each in its unit', () => {
    expect(
      readExportSettings({
        PLATFORM_EXPORT_RETRIES: '0',
        PLATFORM_EXPORT_RETRY_DELAY_SECONDS: '5',
        PLATFORM_EXPORT_RUN_LIMIT_MINUTES: '90',
        PLATFORM_EXPORT_LIMIT_HOURS: '48',
        PLATFORM_EXPORT_RUNS_AT_ONCE: '5',
        PLATFORM_EXPORTS_AT_ONCE: '3',
        PLATFORM_EXPORT_LATE_ARRIVAL_SECONDS: '60',
        PLATFORM_EXPORT_WORKERS: ' 4 ',
      }),
    ).toEqual({
      retries: 0,
      retryDelayMs: 5000,
      runLimitMs: 90 * 60_000,
      exportLimitMs: 48 * HOUR,
      runsAtOnce: 5,
      exportsAtOnce: 3,
      lateArrivalMs: 60_000,
      workers: 4,
    })
  })

  it.each(Object.entries(EXPORT_VARIABLES))('%s takes whole numbers within its bounds only', (name, { min, max }) => {
    for (const good of [min, max]) expect(Object.keys(readExportSettings({ [name]: String(good) }))).toHaveLength(1)
    for (const bad of [String(min - 1), String(max + 1), '1.5', '1e3', 'ten', '0x10']) {
      expect(() => readExportSettings({ [name]: bad })).toThrow(
        `${name} is '${bad}': it takes a whole number from ${min} to ${max}`,
      )
    }
  })
})
