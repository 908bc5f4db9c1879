/** A refusal that the caller should read: the status, and the sentence that goes into `detail` (specification 7). */
export class HttpProblem extends Error {
  readonly status: 400 | 401 | 403 | 404 | 408 | 409 | 413 | 415 | 429 | 503
  readonly headers: Readonly<Record<string, string>>

  constructor(status: HttpProblem['status'], detail: string, headers: Readonly<Record<string, string>> = {}) {
    super(detail)
    this.status = status
    this.headers = headers
  }
}
