import type { IngestError } from '../../../contract/ingest.ts'

const TITLES = {
  400: 'Bad request',
  404: 'Not found',
  408: 'Request timeout',
  409: 'Conflict',
  413: 'Payload too large',
  415: 'Unsupported media type',
  422: 'Unprocessable entity',
  503: 'Service unavailable',
} as const

/** An ingest that is refused as a whole (hosted service). */
export class IngestRefusal extends Error {
  readonly status: keyof typeof TITLES

  constructor(status: keyof typeof TITLES, details: string) {
    super(details)
    this.status = status
  }

  get body(): IngestError {
    return { error: TITLES[this.status], details: this.message }
  }
}
