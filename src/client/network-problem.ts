/** Codes of a certificate that is not trusted, or not of this host: no repetition mends that. */
export function isCertificateProblem(code: string | null): boolean {
  return code !== null && /CERT|UNABLE_TO_VERIFY|SELF_SIGNED|CRL|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE/.test(code)
}

/** True for the words of TLS about a port that speaks plain http: no repetition mends that, either. */
export function isPlainHttp(words: string | null): boolean {
  return words !== null && /wrong version number/i.test(words)
}

/** True for faults of the way to the service: surely nothing was sent. Anything else may have come after the request. */
export function happenedBeforeSending(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(happenedBeforeSending)
  if (!(error instanceof Error)) return false
  const syscall = 'syscall' in error ? error.syscall : null
  const code = codeOf(error)
  return (
    syscall === 'connect' ||
    syscall === 'getaddrinfo' ||
    code === 'EPROTO' ||
    code?.startsWith('ERR_SSL_') === true ||
    isCertificateProblem(code) ||
    error.message.startsWith('tunneling socket could not be established') ||
    error.message.includes('before secure TLS connection was established')
  )
}

/** The system's code and words. An `AggregateError` is a host with several addresses, none of which could be reached. */
export function problemOf(error: unknown): { code: string | null; reason: string } {
  const code = codeOf(error)
  if (error instanceof AggregateError) {
    const problems = error.errors.map(problemOf)
    return { code: code ?? problems[0]?.code ?? null, reason: problems.map((problem) => problem.reason).join(', ') }
  }
  return { code, reason: error instanceof Error ? error.message : String(error) }
}

function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null
}
