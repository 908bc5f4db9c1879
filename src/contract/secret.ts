import { z } from 'zod'

export const SECRET_NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_]*$/
export const SECRET_NAME_MAX = 255
export const SECRET_VALUE_MAX = 65_536
export const SECRETS_MAX = 500

/** Environment names that the service sets itself (hosted service): a deployment may not carry them. */
export const RESERVED_SECRET_NAMES: ReadonlySet<string> = new Set([
  'LANGCHAIN_TRACING_V2',
  'LANGSMITH_TRACING_V2',
  'LANGCHAIN_ENDPOINT',
  'LANGCHAIN_PROJECT',
  'LANGSMITH_PROJECT',
  'LANGSMITH_LANGGRAPH_GIT_REPO',
  'LANGGRAPH_GIT_REPO_PATH',
  'LANGCHAIN_API_KEY',
  'LANGSMITH_CONTROL_PLANE_API_KEY',
  'POSTGRES_URI',
  'POSTGRES_PASSWORD',
  'DATABASE_URI',
  'LANGSMITH_LANGGRAPH_GIT_REF',
  'LANGSMITH_LANGGRAPH_GIT_REF_SHA',
  'LANGGRAPH_AUTH_TYPE',
  'LANGSMITH_AUTH_ENDPOINT',
  'LANGSMITH_TENANT_ID',
  'LANGSMITH_AUTH_VERIFY_TENANT_ID',
  'LANGSMITH_HOST_PROJECT_ID',
  'LANGSMITH_HOST_PROJECT_NAME',
  'LANGSMITH_HOST_REVISION_ID',
  'LOG_JSON',
  'LOG_DICT_TRACEBACKS',
  'REDIS_URI',
  'LANGCHAIN_CALLBACKS_BACKGROUND',
  'DD_TRACE_PSYCOPG_ENABLED',
  'DD_TRACE_REDIS_ENABLED',
  'LANGSMITH_DEPLOYMENT_NAME',
  'LANGGRAPH_CLOUD_LICENSE_KEY',
])

/** One variable of the agent's environment. */
export const secretSchema = z.strictObject({
  name: z
    .string()
    .max(SECRET_NAME_MAX)
    .regex(SECRET_NAME_PATTERN, 'name should be an environment variable name: letters, digits and underscores, not beginning with a digit')
    .refine((name) => !RESERVED_SECRET_NAMES.has(name), 'name is reserved: the service sets it itself'),
  value: z.string().max(SECRET_VALUE_MAX),
})
export type Secret = z.infer<typeof secretSchema>

/** The whole environment: a non-empty list replaces all of it (hosted service). */
export const secretsSchema = z
  .array(secretSchema)
  .max(SECRETS_MAX)
  .refine((secrets) => new Set(secrets.map((secret) => secret.name)).size === secrets.length, 'names should be different')
