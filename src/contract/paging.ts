import { z } from 'zod'

/** Bounds of every list of the control plane (specification 8.1). */
export const PAGE_LIMIT_MIN = 1
export const PAGE_LIMIT_MAX = 100
export const PAGE_LIMIT_DEFAULT = 20

/** Offsets are database integers: a larger one is refused, not wrapped. */
export const PAGE_OFFSET_MAX = 2_147_483_647

/**
 * An integer in a query, where everything arrives as text; `''` is a fault, not zero. One that no number can hold counts as the largest
 * that one can, so that it is judged as too large.
 */
export function integerTextSchema({ min, max }: { min: number; max: number }) {
  return z
    .string()
    .transform((text, context) => {
      if (/^\s*[+-]?\d+\s*$/.test(text)) return Math.max(-Number.MAX_SAFE_INTEGER, Math.min(Number(text), Number.MAX_SAFE_INTEGER))
      const message = 'Input should be a valid integer, unable to parse string as an integer'
      context.addIssue({ code: 'custom', message, params: { type: 'int_parsing' } })
      return z.NEVER
    })
    .pipe(z.number().min(min).max(max))
}

export const limitSchema = integerTextSchema({ min: PAGE_LIMIT_MIN, max: PAGE_LIMIT_MAX })
  .default(PAGE_LIMIT_DEFAULT)
  .meta({ type: 'integer', minimum: PAGE_LIMIT_MIN, maximum: PAGE_LIMIT_MAX, default: PAGE_LIMIT_DEFAULT })

export const offsetSchema = integerTextSchema({ min: 0, max: PAGE_OFFSET_MAX })
  .default(0)
  .meta({ type: 'integer', minimum: 0, default: 0 })

/** One page: the resources, and the `offset` to send for the next one (specification 2.3). */
export function pageSchema<T extends z.ZodType>(resource: T) {
  return z.looseObject({ resources: z.array(resource), offset: z.int().min(0) })
}
