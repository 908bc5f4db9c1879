import { z } from 'zod'

/** One fault of a request (specification 2.4). `loc` names the place: `["body", "source_revision_config", "repo_ref"]`. */
export const validationErrorSchema = z.looseObject({
  loc: z.array(z.union([z.string(), z.int()])),
  msg: z.string(),
  type: z.string(),
})
export type ValidationError = z.infer<typeof validationErrorSchema>

/** The body of a 422 (specification 2.4). */
export const httpValidationErrorSchema = z.looseObject({ detail: z.array(validationErrorSchema).optional() })
export type HttpValidationError = z.infer<typeof httpValidationErrorSchema>

/** The body of every other refusal of the control plane (specification 7.1): one sentence. */
export const detailErrorSchema = z.looseObject({ detail: z.string() })
export type DetailError = z.infer<typeof detailErrorSchema>

/** Specification 7.1: the sentence of a 404, in the words of the hosted service. */
export function deploymentNotFound(deploymentId: string): string {
  return `Deployment ID ${deploymentId} not found.`
}

export function revisionNotFound(revisionId: string): string {
  return `Revision ID ${revisionId} not found.`
}
