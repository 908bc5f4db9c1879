import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { DeploymentContext } from '../../../src/platform/control-plane/deployments.ts'
import { controlPlaneRoutes } from '../../../src/platform/control-plane/routes/routes.ts'
import { describeApi } from '../../../src/platform/http/openapi.ts'
import { readDescription } from '../support/description.ts'

/** The parts of OpenAPI 3.1 that a description of ours uses, strictly: whatever else is in it is a fault. */
const reference = z.strictObject({ $ref: z.string().regex(/^#\/components\/schemas\/\w+$/) })
const typeName = z.enum(['string', 'integer', 'number', 'boolean', 'object', 'array', 'null'])
const schema: z.ZodType = z.lazy(() =>
  z.union([
    reference,
    z.strictObject({
      type: z.union([typeName, z.array(typeName).min(2)]).optional(),
      format: z.enum(['uuid', 'date-time', 'uri']).optional(),
      enum: z.array(z.union([z.string(), z.null()])).min(1).optional(),
      properties: z.record(z.string(), schema).optional(),
      required: z.array(z.string()).optional(),
      additionalProperties: z.union([z.boolean(), schema]).optional(),
      items: schema.optional(),
      anyOf: z.array(schema).min(2).optional(),
      minimum: z.number().optional(),
      maximum: z.number().optional(),
      minLength: z.int().optional(),
      maxLength: z.int().optional(),
      minItems: z.int().optional(),
      maxItems: z.int().optional(),
      pattern: z.string().refine((source) => new RegExp(source) instanceof RegExp).optional(),
      default: z.unknown().optional(),
      description: z.string().optional(),
    }),
  ]),
)
const content = z.strictObject({ 'application/json': z.strictObject({ schema }) })
const operation = z.strictObject({
  operationId: z.string().regex(/^[a-z]\w+$/i),
  summary: z.string().min(1),
  security: z.array(z.record(z.enum(['ApiKey', 'TenantId', 'BearerAuth']), z.array(z.never()).optional())),
  parameters: z
    .array(
      z.strictObject({
        name: z.string(),
        in: z.enum(['path', 'query']),
        required: z.boolean(),
        description: z.string().optional(),
        schema,
      }),
    )
    .optional(),
  requestBody: z.strictObject({ required: z.boolean(), content }).optional(),
  responses: z.record(z.string().regex(/^[1-5]\d\d$/), z.strictObject({ description: z.string().min(1), content: content.optional() })),
})
const documentSchema = z.strictObject({
  openapi: z.literal('3.1.0'),
  info: z.strictObject({ title: z.string(), version: z.string() }),
  components: z.strictObject({
    schemas: z.record(z.string(), schema),
    parameters: z.strictObject({}),
    securitySchemes: z.record(z.string(), z.looseObject({ type: z.enum(['apiKey', 'http']) })),
  }),
  webhooks: z.strictObject({}),
  paths: z.record(z.string().startsWith('/'), z.partialRecord(z.enum(['get', 'post', 'patch', 'delete']), operation)),
})

const routes = controlPlaneRoutes({} as DeploymentContext)
const document = documentSchema.parse(describeApi(routes, 'spec'))
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, described]) => ({ path, method, operation: described as z.output<typeof operation> })),
)

describe('the description', () => {
  it('is OpenAPI 3.1, version 0.1.0, of every route', () => {
    expect(document.info.version).toBe('0.1.0')
    expect(operations.map(({ path, method }) => `${method} ${path}`).toSorted()).toEqual(
      routes.map(({ definition }) => `${definition.method} ${definition.path}`).toSorted(),
    )
  })

  it('has only paths that start with a version', () => {
    for (const path of Object.keys(document.paths)) expect(path).toMatch(/^\/v[12]\//)
    expect(Object.keys(document.paths).filter((path) => path.startsWith('/v2/')).every((path) => path.startsWith('/v2/deployments'))).toBe(true)
  })

  it('gives every operation a name of its own and every reference a target', () => {
    const names = operations.map(({ operation }) => operation.operationId)
    expect(new Set(names).size).toBe(names.length)
    const targets = JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)
    for (const [, name] of targets) expect(document.components.schemas).toHaveProperty(name as string)
  })

  it('names the main objects as the service does', () => {
    for (const name of ['Deployment', 'DeploymentsList', 'Revision', 'RevisionsList', 'SourceRevisionConfig', 'HTTPValidationError', 'ValidationError']) {
      expect(document.components.schemas).toHaveProperty(name)
    }
    expect(document.components.schemas['RevisionsList']).toMatchObject({
      properties: { resources: { type: 'array', items: { $ref: '#/components/schemas/Revision' } }, offset: { type: 'integer' } },
      required: ['resources', 'offset'],
    })
    expect(document.components.schemas['ValidationError']).toMatchObject({ required: ['loc', 'msg', 'type'] })
    expect(document.components.schemas['HTTPValidationError']).not.toHaveProperty('required')
    expect(document.components.schemas['Revision']).toMatchObject({
      required: expect.arrayContaining(['id', 'created_at', 'updated_at', 'status', 'source', 'source_revision_config']) as unknown,
    })
  })

  it('has the parameters of the revisions list with their types, defaults and bounds', () => {
    const list = document.paths['/v2/deployments/{deployment_id}/revisions']?.get
    expect(list?.parameters).toEqual([
      { name: 'deployment_id', in: 'path', required: true, schema: { type: 'string', format: 'uuid' } },
      { name: 'limit', in: 'query', required: false, schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 } },
      { name: 'offset', in: 'query', required: false, schema: { type: 'integer', minimum: 0, default: 0 } },
      expect.objectContaining({ name: 'status', required: false, schema: expect.objectContaining({ type: ['string', 'null'] }) as unknown }),
      { name: 'remote_reconciled', in: 'query', required: false, schema: { type: ['boolean', 'null'] } },
    ])
    expect(Object.keys(list?.responses ?? {})).toEqual(['200', '401', '403', '404', '422', '503'])
  })

  it('has a parameter for every part of a path', () => {
    for (const { path, operation } of operations) {
      const inPath = operation.parameters?.filter((parameter) => parameter.in === 'path').map(({ name }) => `{${name}}`) ?? []
      expect(inPath).toEqual(path.match(/\{\w+\}/g) ?? [])
    }
  })

  it('lists the three security schemes, and asks for one of them everywhere', () => {
    expect(document.components.securitySchemes).toEqual({
      ApiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
      TenantId: { type: 'apiKey', in: 'header', name: 'X-Tenant-Id' },
      BearerAuth: { type: 'http', scheme: 'bearer' },
    })
    for (const { operation } of operations) expect(operation.security.length).toBeGreaterThan(0)
  })

  it('is in the words of the dialect', () => {
    const vendor = JSON.stringify(documentSchema.parse(describeApi(routes, 'vendor')))
    expect(vendor).toContain('"langgraph_config_path"')
    expect(vendor).toContain('"enum":["github","external_docker"]')
    expect(vendor).not.toMatch(/git_host|"graph_config_path/)
  })
})

describe('the check of answers against the description', () => {
  const { check } = readDescription(document)
  const path = '/v2/deployments/6f1fdc0e-2a1c-4a63-9d1b-0e9f6ad0a001/revisions'
  const answer = { method: 'GET', path, status: 200, contentType: 'application/json', body: { resources: [], offset: 0 } as unknown }

  it.each([
    ['a path that is not described', { path: '/v3/deployments' }],
    ['a method that is not described', { method: 'PATCH' }],
    ['a status that is not described', { status: 418 }],
    ['another content type', { contentType: 'text/html' }],
    ['a missing field', { body: { resources: [] } }],
    ['a field too many', { body: { resources: [], offset: 0, total: 1 } }],
    ['another type', { body: { resources: {}, offset: 0 } }],
    ['a number out of bounds', { body: { resources: [], offset: -1 } }],
    ['a fault in a list', { body: { resources: [{ id: 1 }], offset: 1 } }],
    ['a 422 without its fields', { status: 422, body: { detail: [{ loc: ['a'], msg: 'x' }] } }],
  ])('finds %s', (_what, change) => {
    check(answer)
    const changed = { ...answer, ...change }
    expect(() => check(changed)).toThrow(`${changed.method} ${changed.path} -> ${changed.status}`)
  })
})
