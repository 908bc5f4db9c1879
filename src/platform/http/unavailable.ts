/** SQLSTATE classes and codes that mean "not now": connection lost, server starting or stopping, out of resources, timed out, deadlock. */
const PASSING_STATES = /^(?:08|53|57P|57014|40001|40P01|55P03|25P03)/

/** Node's codes for a server that cannot be reached. */
const UNREACHABLE = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'])

/** What the database driver says in words only. */
const LOST = /timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|driver has already been destroyed/

/** True for an error of the database that goes away by itself: the caller may simply try again. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof AggregateError) return error.errors.some(isUnavailable)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return PASSING_STATES.test(code) || UNREACHABLE.has(code) || LOST.test(error.message)
}
