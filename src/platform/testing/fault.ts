import { z } from 'zod'

/** How an answer breaks. `truncated`: half of its body, then the end of the connection; `stalled`: half, then silence. */
export const BREAKAGES = ['reset', 'truncated', 'stalled', 'html'] as const

const SHORTEST_STATUS = 200

/**
 * A fault that requests meet, as `POST /_test/faults` takes it. Without a `status` and without `reset` or `html` the request is carried
 * out, and its answer is delayed or broken.
 */
export const faultSchema = z
  .strictObject({
    /** Requests that meet it: all, unless these say less. In `path` a `*` stands for one segment, `**` for any number. */
    method: z
      .string()
      .regex(/^[A-Za-z]+$/)
      .max(16)
      .transform((method) => method.toUpperCase())
      .nullish(),
    path: z.string().startsWith('/').max(2048).nullish(),
    /** How many requests meet it, and how many pass before the first one does. */
    times: z.int().min(1).max(1_000_000).default(1),
    skip: z.int().min(0).max(1_000_000).default(0),
    status: z.int().min(SHORTEST_STATUS).max(599).nullish(),
    headers: z
      .record(
        z.string().regex(/^[\w-]+$/),
        z
          .string()
          .regex(/^[\t\x20-\x7e]*$/)
          .max(4096),
      )
      .nullish(),
    /** JSON of the answer with `status`. */
    body: z.unknown().optional(),
    delay_ms: z.int().min(0).max(600_000).default(0),
    broken: z.enum(BREAKAGES).nullish(),
    /** With `status`, `reset` or `html`: the request is carried out all the same, and its answer is lost. */
    handled: z.boolean().default(false),
  })
  .superRefine((fault, context) => {
    const wrong = (field: string, message: string) => context.addIssue({ code: 'custom', path: [field], message })
    const status = fault.status ?? null
    if (status === null && !fault.broken && fault.delay_ms === 0) wrong('status', 'a fault needs a status, a delay_ms or broken')
    if (status === null && fault.headers) wrong('headers', 'headers need a status')
    if (status === null && fault.body !== undefined) wrong('body', 'a body needs a status')
    if (fault.handled && status === null && fault.broken !== 'reset' && fault.broken !== 'html') {
      wrong(
        'handled',
        "it says something only with a status, with 'reset' or with 'html': else the request is carried out anyway",
      )
    }
  })
export type Fault = z.output<typeof faultSchema>

/** A fault in the list: `left` requests will still meet it, `struck` have. */
export const listedFaultSchema = z.looseObject({ id: z.guid(), left: z.int(), struck: z.int() })
export type ListedFault = Fault & { readonly id: string; readonly left: number; readonly struck: number }
