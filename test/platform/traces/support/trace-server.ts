import { startTraceService } from './trace-service.ts'

/** The trace service in a process of its own, to be killed: its directory and its key are the arguments. */
const [directory, key] = process.argv.slice(2) as [string, string]
const { url } = await startTraceService({ directory, key })
process.stdout.write(`${JSON.stringify({ url })}\n`)
