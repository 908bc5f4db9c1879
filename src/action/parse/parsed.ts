import type { z } from 'zod'

/** What reading a text gave: the value, or a clause on what is wrong with it, and the fix where a better one is known. */
export type Parsed<T> = { value: T } | { problem: string; fix?: string }

/** Reads a text with a schema of the contract; the first issue is the problem. */
export function parseWith<T>(schema: z.ZodType<T>, text: string): Parsed<T> {
  const result = schema.safeParse(text)
  return result.success ? { value: result.data } : { problem: result.error.issues[0]?.message ?? 'is not accepted' }
}

/** Strictly `true` or `false`. */
export function parseBoolean(text: string): Parsed<boolean> {
  if (text === 'true' || text === 'false') return { value: text === 'true' }
  const meant =
    { yes: 'true', on: 'true', '1': 'true', no: 'false', off: 'false', '0': 'false' }[text.toLowerCase()] ?? text.toLowerCase()
  return meant === 'true' || meant === 'false'
    ? { problem: 'is not a boolean', fix: `write ${meant}` }
    : { problem: 'is not a boolean' }
}

/** One of a few words. */
export function parseEnum<const T extends string>(values: readonly T[], text: string): Parsed<T> {
  const value = values.find((candidate) => candidate === text)
  if (value !== undefined) return { value }
  const near = values.find((candidate) => candidate === text.toLowerCase())
  return near === undefined ? { problem: 'is not one of them' } : { problem: 'is not one of them', fix: `write ${near}` }
}
