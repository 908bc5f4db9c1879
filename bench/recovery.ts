import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDeployment, createEchoRepository, median, seconds, startPlatform, untilDeployed, writeResults } from './platform-process.ts'

/** How long it takes after a kill -9 until the platform answers again, and until its agent does. */

const RUNS = Number(process.argv[2] ?? 5)

const folder = mkdtempSync(join(tmpdir(), 'bench-recovery-'))
const data = join(folder, 'data')
const repository = createEchoRepository(folder)
let platform = await startPlatform(data)
try {
  const deployment = await createDeployment(platform, { name: 'bench', repoUrl: repository.url })
  await untilDeployed(platform, deployment)
  const path = `${new URL(deployment.url ?? '').pathname}/ok`
  const runs: { platformMs: number; agentMs: number }[] = []
  for (let run = 0; run < RUNS; run += 1) {
    const killedAt = performance.now()
    await platform.end('SIGKILL')
    platform = await startPlatform(data)
    const platformMs = performance.now() - killedAt
    while (!(await platform.ask(path).then(() => true, () => false))) await new Promise((resolve) => setTimeout(resolve, 20))
    runs.push({ platformMs, agentMs: performance.now() - killedAt })
  }
  const platformMs = median(runs.map((run) => run.platformMs))
  const agentMs = median(runs.map((run) => run.agentMs))
  console.log(`kill -9 to serving again, median of ${RUNS}\n`)
  console.log(`${'platform answers'.padEnd(18)}${seconds(platformMs)}`)
  console.log(`${'agent answers'.padEnd(18)}${seconds(agentMs)}`)
  writeResults('recovery', { runs, platformMs, agentMs })
} finally {
  await platform.end('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
}
