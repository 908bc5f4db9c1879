import { z } from 'zod'

/** Bounds of every list of the control plane (specification 8.1). */
export const PAGE_LIMIT_MIN = 1
export const PAGE_LIMIT_MAX = 100
export const PAGE_LIMIT_DEFAULT = 20

/** Offsets are database integers: a larger one is refused, not wrapped. */
export const PAGE_OFFSET_MAX = 2_147_483_647

/** Query parameters arrive as text; `''` is a fault, not zero. */
const integerText = z
  .string()
  .regex(/^[+-]?\d+$/, 'Input should be a valid integer')
  .transform(Number)

export const limitSchema = integerText
  .pipe(z.int().min(PAGE_LIMIT_MIN).max(PAGE_LIMIT_MAX))
  .default(PAGE_LIMIT_DEFAULT)

export const offsetSchema = integerText.pipe(z.int().min(0).max(PAGE_OFFSET_MAX)).default(0)

/** One page: the resources, and the `offset` to send for the next one (specification 2.3). */
export function pageSchema<T extends z.ZodType>(resource: T) {
  return z.looseObject({ resources: z.array(resource), offset: z.int().min(0) })
}
