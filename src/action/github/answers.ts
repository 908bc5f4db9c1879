import { z } from 'zod'

/** GitHub's answers, as far as they are used; whatever else is in them may change. */

const instant = z.string().transform((text, context) => {
  const at = Date.parse(text)
  if (Number.isNaN(at)) context.addIssue({ code: 'custom', message: 'is not a time' })
  return at
})
const account = z.looseObject({ login: z.string(), type: z.string().optional() }).nullish()

export const pullRequestSchema = z.looseObject({
  number: z.int(),
  state: z.string(),
  head: z.looseObject({ ref: z.string(), sha: z.string(), repo: z.looseObject({ full_name: z.string() }).nullish() }),
})

export const objectSchema = z.looseObject({ object: z.looseObject({ type: z.string(), sha: z.string() }) })

export const deploymentSchema = z.looseObject({
  id: z.int(),
  sha: z.string(),
  ref: z.string(),
  task: z.string(),
  environment: z.string(),
  payload: z.unknown(),
  created_at: instant,
})

export const statusSchema = z.looseObject({
  id: z.int(),
  state: z.string(),
  description: z.string().nullish(),
  created_at: instant,
})

export const commentSchema = z.looseObject({
  id: z.int(),
  body: z.string().nullish(),
  user: account,
  html_url: z.string(),
})

export const viewerSchema = z.looseObject({ data: z.looseObject({ viewer: z.looseObject({ login: z.string().min(1) }) }) })
