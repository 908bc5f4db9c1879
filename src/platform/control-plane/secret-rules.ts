import type { Secret } from '../../contract/secret.ts'
import { HttpProblem } from '../http/problem.ts'
import type { Offering } from './source-rules.ts'

/** What an operating system passes to a process, with room for what the platform adds: one variable, and all of them, in bytes. */
export const SECRET_BYTES_MAX = 100_000
export const ENVIRONMENT_BYTES_MAX = 1_000_000

/** Names that only a self-hosted installation may set (hosted service): in the cloud the service sets them. */
const SELF_HOSTED_ONLY: ReadonlySet<string> = new Set([
  'LANGSMITH_API_KEY',
  'LANGSMITH_ENDPOINT',
  'POSTGRES_URI_CUSTOM',
  'REDIS_URI_CUSTOM',
  'PATH',
  'PORT',
  'MOUNT_PREFIX',
  'LSD_ENV',
  'LSD_DD_API_KEY',
  'LSD_DD_ENDPOINT',
  'LSD_DEPLOYMENT_TYPE',
])

/** Judges an environment as a whole. @throws {HttpProblem} 400 with the name at fault, never a value. */
export function judgeSecrets(secrets: readonly Secret[], offering: Offering): void {
  let total = 0
  for (const { name, value } of secrets) {
    const bytes = Buffer.byteLength(name) + Buffer.byteLength(value) + 2
    total += bytes
    if (bytes > SECRET_BYTES_MAX) refuse(`the value of '${name}' has more than ${SECRET_BYTES_MAX} bytes`)
    if (offering === 'cloud' && SELF_HOSTED_ONLY.has(name)) {
      refuse(`'${name}' can be set on self-hosted installations only; this is the cloud offering, which sets it itself`)
    }
  }
  if (total > ENVIRONMENT_BYTES_MAX) refuse(`together they have more than ${ENVIRONMENT_BYTES_MAX} bytes`)
}

function refuse(rule: string): never {
  throw new HttpProblem(400, `Secrets error: ${rule}.`)
}
