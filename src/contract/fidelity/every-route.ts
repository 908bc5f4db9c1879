import { chosen, documented, type Evidence, inferred, specification } from './evidence.ts'

/** Statuses that every described route may answer. */
export const EVERY_ROUTE: Readonly<Record<number, Evidence>> = {
  401: inferred('sample pipeline', 'it takes 401 and 403 for a key of another region'),
  403: chosen(
    'the key is known and belongs to another workspace than X-Tenant-Id names: 401 would send the reader after the key',
  ),
  422: documented('control plane description', 'specification 4.1 has it for the list of revisions'),
  503: chosen('the database does not answer at the moment; it goes away by itself, which a 500 does not say'),
}

/** Those that every described route with a body may answer. */
export const EVERY_BODY: Readonly<Record<number, Evidence>> = {
  408: chosen('a body has 30 seconds to arrive'),
  413: chosen('a body has 4 MiB at most'),
  415: chosen('a compressed body is not expected here'),
}

/** Statuses of the ways in for runs, which have no description in `/openapi.json`: they read their bodies themselves. */
export const EVERY_INGEST: Readonly<Record<number, Evidence>> = {
  202: documented('main API description'),
  400: documented('main API description'),
  401: inferred('client library'),
  403: documented('main API description'),
  408: chosen('a body has bounds of time'),
  413: inferred('client library', 'the hosted service answers HTML here, from its load balancer'),
  415: chosen('an encoding other than gzip and zstd'),
  422: documented('main API description'),
  429: specification('8.3', 'its body and headers are chosen, in the form that the description has for refusals'),
  503: chosen('the database does not answer at the moment: send it again'),
}
