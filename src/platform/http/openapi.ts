import {
  OpenApiGeneratorV31,
  OpenAPIRegistry,
  type ResponseConfig,
  type RouteConfig,
  zodToOpenAPIRegistry,
} from '@asteasolutions/zod-to-openapi'
import { z } from 'zod'
import { deploymentSchema, deploymentsListSchema } from '../../contract/deployment.ts'
import { type Dialect, textToDialect } from '../../contract/dialects.ts'
import { detailErrorSchema, httpValidationErrorSchema, validationErrorSchema } from '../../contract/errors.ts'
import { API_KEY_HEADER, TENANT_ID_HEADER } from '../../contract/headers.ts'
import { logEntrySchema, logsResponseSchema } from '../../contract/log.ts'
import { revisionSchema, revisionsListSchema, sourceRevisionConfigSchema } from '../../contract/revision.ts'
import type { Route } from './route.ts'

/** Version of the control plane's interface description (specification 9.1). */
export const API_VERSION = '0.1.0'

/** The objects that have a name of their own in the description (specification 2). */
const COMPONENTS = {
  Deployment: deploymentSchema,
  DeploymentsList: deploymentsListSchema,
  Revision: revisionSchema,
  RevisionsList: revisionsListSchema,
  SourceRevisionConfig: sourceRevisionConfigSchema,
  HTTPValidationError: httpValidationErrorSchema,
  ValidationError: validationErrorSchema,
  Problem: detailErrorSchema,
  LogsResponse: logsResponseSchema,
  LogEntry: logEntrySchema,
} as const satisfies Record<string, z.ZodType>

for (const [refId, schema] of Object.entries(COMPONENTS)) zodToOpenAPIRegistry.add(schema, { _internal: { refId } })

/** Answers that every route may give, and those of routes that take a body. */
const ANSWERS_OF_ALL = {
  401: { description: 'The API key is missing or wrong.', schema: detailErrorSchema },
  403: { description: `The API key belongs to another workspace than ${TENANT_ID_HEADER} names.`, schema: detailErrorSchema },
  422: { description: 'The request does not fit; every fault is listed.', schema: httpValidationErrorSchema },
  503: { description: 'The database does not answer at the moment.', schema: detailErrorSchema },
} as const
const ANSWERS_TO_BODIES = {
  408: { description: 'The body did not arrive in time.', schema: detailErrorSchema },
  413: { description: 'The body is too large.', schema: detailErrorSchema },
  415: { description: 'The body has a Content-Encoding.', schema: detailErrorSchema },
} as const

/** The OpenAPI 3.1 description of the routes, made from the very schemas that judge requests. */
export function describeApi(routes: readonly Route[], dialect: Dialect, publicUrl?: string): object {
  const registry = new OpenAPIRegistry()
  registry.registerComponent('securitySchemes', 'ApiKey', { type: 'apiKey', in: 'header', name: API_KEY_HEADER })
  registry.registerComponent('securitySchemes', 'TenantId', { type: 'apiKey', in: 'header', name: TENANT_ID_HEADER })
  registry.registerComponent('securitySchemes', 'BearerAuth', { type: 'http', scheme: 'bearer' })
  for (const { definition } of routes) registry.registerPath(describeRoute(definition))
  const document = new OpenApiGeneratorV31(registry.definitions).generateDocument({
    openapi: '3.1.0',
    info: { title: 'Deploy Agent Server', version: API_VERSION },
    ...(publicUrl === undefined ? {} : { servers: [{ url: publicUrl }] }),
  })
  return JSON.parse(textToDialect(JSON.stringify(document), dialect)) as object
}

function describeRoute(definition: Route['definition']): RouteConfig {
  const request: NonNullable<RouteConfig['request']> = {}
  if (definition.params instanceof z.ZodObject) request.params = definition.params
  if (definition.query instanceof z.ZodObject) request.query = definition.query
  if (definition.body !== undefined) {
    request.body = { required: !definition.body.isOptional(), content: { 'application/json': { schema: definition.body } } }
  }
  const answers = { ...definition.answers, ...ANSWERS_OF_ALL, ...(definition.body === undefined ? {} : ANSWERS_TO_BODIES) }
  return {
    method: definition.method,
    path: definition.path,
    operationId: definition.operationId,
    summary: definition.summary,
    security: [{ ApiKey: [] }, { ApiKey: [], TenantId: [] }, { BearerAuth: [] }],
    request,
    responses: Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, describeAnswer(answer)])),
  }
}

function describeAnswer({ description, schema }: { description: string; schema?: z.ZodType }): ResponseConfig {
  return { description, ...(schema === undefined ? {} : { content: { 'application/json': { schema } } }) }
}
