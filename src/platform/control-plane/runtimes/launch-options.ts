import { z } from 'zod'

/** What the platform tells the launcher (its one argument, as JSON). Nothing secret: arguments can be read by others. */
export interface LaunchOptions {
  readonly host: string
  /** Runs at the same time. */
  readonly workers: number
  /** Where threads and checkpoints are kept. */
  readonly stateDirectory: string
  /** Graph id to `path:export` with an absolute path. */
  readonly graphs: Record<string, string>
  readonly auth?: Record<string, unknown>
  readonly http?: Record<string, unknown>
}

/** What the launcher tells the platform. The agent's code has the same channel: nothing else is believed. */
export const launchMessageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('listening'), port: z.int().min(1).max(65_535) }),
  z.object({ type: z.literal('failed'), message: z.string().max(4096) }),
])
export type LaunchMessage = z.infer<typeof launchMessageSchema>

/** The platform's only order: finish what is in flight within the grace, then exit. */
export const launchOrderSchema = z.object({ type: z.literal('stop'), graceMs: z.number().min(0) })
export type LaunchOrder = z.infer<typeof launchOrderSchema>
