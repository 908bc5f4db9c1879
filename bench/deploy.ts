import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Deployment } from '../src/contract/deployment.ts'
import {
  createDeployment,
  createEchoRepository,
  median,
  phasesOf,
  seconds,
  startPlatform,
  untilDeployed,
  writeResults,
} from './platform-process.ts'

/** Seconds from a PATCH to DEPLOYED for the example agent, split by the statuses that the revision passes. The npm cache is warm. */

const RUNS = Number(process.argv[2] ?? 5)
const PHASES = ['CREATING', 'QUEUED', 'AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING']

const folder = mkdtempSync(join(tmpdir(), 'bench-deploy-'))
const data = join(folder, 'data')
const repository = createEchoRepository(folder)
const platform = await startPlatform(data)
try {
  const begin = performance.now()
  const deployment = await createDeployment(platform, { name: 'bench', repoUrl: repository.url })
  await untilDeployed(platform, deployment)
  const firstMs = performance.now() - begin

  const runs: { totalMs: number; phases: Record<string, number> }[] = []
  for (let run = 1; run <= RUNS; run += 1) {
    repository.commit(String(run))
    const started = performance.now()
    const body = { source_revision_config: { repo_ref: 'main' } }
    const patched = await platform.ask<Deployment>(`/v2/deployments/${deployment.id}`, { method: 'PATCH', body })
    const { id } = await untilDeployed(platform, patched)
    runs.push({ totalMs: performance.now() - started, phases: Object.fromEntries(await phasesOf(data, id)) })
  }

  const totals = runs.map((run) => run.totalMs)
  const phases = Object.fromEntries(PHASES.map((phase) => [phase, median(runs.map((run) => run.phases[phase] ?? 0))]))
  console.log(`PATCH to DEPLOYED, the example agent, median of ${RUNS}\n`)
  for (const [phase, ms] of Object.entries(phases)) console.log(`${phase.padEnd(18)}${seconds(ms)}`)
  const range = `${seconds(Math.min(...totals)).trim()} to ${seconds(Math.max(...totals)).trim()}`
  console.log(`${'in all'.padEnd(18)}${seconds(median(totals))}   (${range})`)
  console.log(`\nThe first deploy of the deployment, with an empty npm cache: ${seconds(firstMs).trim()}`)
  writeResults('deploy', { runs, medianMs: median(totals), phases, firstMs })
} finally {
  await platform.end('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
}
