import { fork } from 'node:child_process'
import { join } from 'node:path'

/** Starts a bucket that counts what it gets and keeps nothing, in a process of its own, so that it takes no time of what is measured. */
export async function startBucket(): Promise<{ port: number; stop: () => void }> {
  const bucket = fork(join(import.meta.dirname, 'bucket-process.ts'), { execArgv: [] })
  const port = await new Promise<number>((resolve) => void bucket.once('message', (message) => resolve(Number(message))))
  return { port, stop: () => void bucket.kill() }
}
