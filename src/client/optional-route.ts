import { RequestFailure } from './failure.ts'

/**
 * Turns "no such route" into `unsupported`, saying "this control plane has no …". A 404 whose words name one of the ids is a
 * missing resource instead, and goes on as it is.
 */
export async function onOptionalRoute<T>({ ids, what, run }: {
  ids: readonly string[]
  what: string
  run: () => Promise<T>
}): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!isMissingRoute(error, ids)) throw error
    const summary = `answered ${error.status}: this control plane has no ${what}`
    throw error.with({ kind: 'unsupported', summary, detail: null })
  }
}

/** True for a 404 that does not name one of the ids, and for a 405. */
export function isMissingRoute(error: unknown, ids: readonly string[]): error is RequestFailure {
  if (!(error instanceof RequestFailure) || error.kind !== 'http') return false
  if (error.status === 405) return true
  return error.status === 404 && !isMissingResource(error, ids)
}

/** True for a 404 whose words name one of the ids. */
export function isMissingResource(error: unknown, ids: readonly string[]): boolean {
  if (!(error instanceof RequestFailure) || error.kind !== 'http' || error.status !== 404) return false
  const words = error.detail?.toLowerCase() ?? ''
  return ids.some((id) => words.includes(id.toLowerCase()))
}
