import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { RequestFailure } from '../../../src/client/failure.ts'

export type ChildResult = { body?: unknown; failure?: RequestFailure; code: number | null; lingeredMs: number; stderr: string }

/** One GET from a process of its own, with its own environment; `lingeredMs` is how long the process lived on after its end. */
export async function requestFromChild(
  request: { baseUrl: string; timeoutMs?: number; attempts?: number; cancelAfterMs?: number },
  env: Record<string, string> = {},
): Promise<ChildResult> {
  const script = fileURLToPath(new URL('request-child.ts', import.meta.url))
  const child = spawn(process.execPath, [script], {
    env: { PATH: process.env['PATH'] ?? '', ...env, CHILD_REQUEST: JSON.stringify(request) },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 9000,
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (stdout === '') throw new Error(`the child printed nothing (exit ${code}): ${stderr}`)
  const { settledAt, ...result } = JSON.parse(stdout) as { settledAt: number; body?: unknown; failure?: RequestFailure }
  return { ...result, code, lingeredMs: Date.now() - settledAt, stderr }
}
