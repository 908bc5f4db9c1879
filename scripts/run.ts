import { spawn } from 'node:child_process'
import { ROOT } from './root.ts'

/** What a finished command left behind. `output` is standard output and standard error in the order of arrival. */
export type Finished = { code: number; output: string; seconds: number }

/**
 * Runs a script with this same Node, from the root and with no input, and waits for its end.
 * A signal or a failed start counts as exit code 1.
 */
export function runNode(args: readonly string[]): Promise<Finished> {
  const start = performance.now()
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
    const chunks: Buffer[] = []
    const finish = (code: number, note = ''): void => {
      const output = Buffer.concat(chunks).toString() + note
      resolve({ code, output, seconds: (performance.now() - start) / 1000 })
    }
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('error', (error) => finish(1, `could not start: ${error.message}\n`))
    child.on('close', (code, signal) => finish(code ?? 1, signal === null ? '' : `ended by ${signal}\n`))
  })
}
