import { z } from 'zod'

/** Paging of a revision's logs (hosted service). */
export const LOG_LIMIT_MIN = 1
export const LOG_LIMIT_MAX = 1000
export const LOG_LIMIT_DEFAULT = 50

export const LOG_TYPES = ['build', 'deploy'] as const
export const logTypeSchema = z.enum(LOG_TYPES)
export type LogType = z.infer<typeof logTypeSchema>

export const LOG_LEVELS = ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'] as const
export const logLevelSchema = z.enum(LOG_LEVELS)
export type LogLevel = z.infer<typeof logLevelSchema>

export const LOG_ORDERS = ['asc', 'desc'] as const
export const logOrderSchema = z.enum(LOG_ORDERS)

/** One line. */
export const logEntrySchema = z.object({
  id: z.string(),
  timestamp: z.iso.datetime(),
  level: logLevelSchema,
  message: z.string(),
})
export type LogEntry = z.infer<typeof logEntrySchema>

/** One page; `next_offset` is opaque, null on the last page. */
export const logsResponseSchema = z.object({ logs: z.array(logEntrySchema), next_offset: z.string().nullable() })
