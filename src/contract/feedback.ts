import { z } from 'zod'

const json = z.unknown()

/**
 * The body of `POST /feedback`: on a run, or on a tracing project (`session_id`) alone. A score that is a boolean counts 1 or 0.
 */
export const feedbackCreateSchema = z
  .looseObject({
    id: z.guid().nullish(),
    run_id: z.guid().nullish(),
    trace_id: z.guid().nullish(),
    session_id: z.guid().nullish(),
    key: z.string().min(1).max(180),
    score: z.union([z.number(), z.boolean()]).nullish(),
    value: json.optional(),
    comment: z.string().nullish(),
    correction: json.optional(),
    feedback_source: z.looseObject({ type: z.string() }).nullish(),
  })
  .refine((feedback) => Boolean(feedback.run_id ?? feedback.session_id), {
    message: 'Feedback needs a run_id or a session_id',
    path: ['run_id'],
  })
export type FeedbackCreate = z.infer<typeof feedbackCreateSchema>

/** The body of `PATCH /feedback/{feedback_id}`: what is absent stays. */
export const feedbackPatchSchema = z.looseObject({
  score: z.union([z.number(), z.boolean()]).nullish(),
  value: json.optional(),
  comment: z.string().nullish(),
  correction: json.optional(),
})
export type FeedbackPatch = z.infer<typeof feedbackPatchSchema>

export const feedbackSchema = z.looseObject({
  id: z.guid(),
  run_id: z.guid().nullable(),
  trace_id: z.guid().nullable(),
  session_id: z.guid().nullable(),
  key: z.string(),
  score: z.number().nullable(),
  value: json,
  comment: z.string().nullable(),
  correction: json,
  feedback_source: json,
  created_at: z.string(),
  modified_at: z.string(),
})
export type Feedback = z.infer<typeof feedbackSchema>

export function feedbackNotFound(feedbackId: string): string {
  return `Feedback ID ${feedbackId} not found.`
}
