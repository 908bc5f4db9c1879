import { access } from 'node:fs/promises'
import path from 'node:path'
import { AGENT_SILENT_MS, type AgentHost, type HostedAgent, makeServing } from '../../agents/host.ts'
import type { Database, RevisionRow } from '../../database/schema.ts'
import type { Log } from '../../log.ts'
import { FETCH_LIMIT_MS, StartFailure } from '../runtimes/runtime.ts'
import { type Claim, claimRevision, MAX_LOSSES } from './lease.ts'
import { INTERRUPTION, type Settlement, settlementOf, settleStubbornly } from './settle.ts'
import { type Hands, hold } from './work.ts'

export interface DeployWorkerOptions {
  readonly db: Database
  readonly host: AgentHost
  readonly log: Log
  readonly nodeId: string
  /** The folder of this node's builds; absent: any folder will do. */
  readonly builds?: string
  readonly limitMs: number
  readonly hands: Hands
  /** Called after the swap is committed, before the revision before is drained. */
  readonly onSwap: () => Promise<void>
}

/**
 * Starts the agent of the next built revision and swaps it in: from one commit on it is `DEPLOYED`, active and serving. When it does not
 * come up, the revision before goes on serving. @returns whether there was one.
 */
export async function deployNext(options: DeployWorkerOptions): Promise<boolean> {
  const { db, log } = options
  const claim = await claimRevision(db, { from: 'AWAITING_DEPLOY', to: 'DEPLOYING', owner: options.nodeId, log })
  if (claim === null) return false
  const outcome = await startAgent(claim, options)
  if (outcome === null) return true
  if ('agent' in outcome) await swapIn(claim, outcome.agent, options)
  else {
    const settled = await settleStubbornly(db, claim, outcome, log)
    if (settled === 'interrupted') await settleStubbornly(db, claim, INTERRUPTION, log)
  }
  return true
}

/** The agent, which answers, or how the revision is to be left; null when it is nobody's business any more. */
async function startAgent(claim: Claim, options: DeployWorkerOptions): Promise<{ agent: HostedAgent } | Settlement | null> {
  const { db, host, log, hands, limitMs } = options
  let launched: HostedAgent | undefined
  try {
    const deployment = await db.selectFrom('deployments').selectAll().where('id', '=', claim.deployment_id).executeTakeFirst()
    if (deployment === undefined) return null
    if (!(await isReady(claim, options.builds))) return withoutBuild(claim, options.nodeId)
    const fetchLimitMs = claim.source === 'external_docker' ? FETCH_LIMIT_MS : 0
    const work = async (signal: AbortSignal) => {
      launched = await host.launch({ deployment, revision: claim, signal, timeoutMs: limitMs })
      return launched
    }
    // The host's own limit comes first and says more.
    return { agent: await hold(db, { claim, limitMs: limitMs + fetchLimitMs + AGENT_SILENT_MS, hands, work }) }
  } catch (error) {
    // It may have come up in the very moment in which the work was stopped.
    if (launched !== undefined) await host.end(launched, { graceMs: 0 })
    if (!(error instanceof StartFailure))
      log.info({ revisionId: claim.id, error: (error as Error).message }, 'a deploy did not finish')
    return settlementOf(claim, error, describeDeployError)
  }
}

async function swapIn(claim: Claim, agent: HostedAgent, { db, host, log, onSwap }: DeployWorkerOptions): Promise<void> {
  const swap: Settlement = {
    to: 'DEPLOYED',
    reason: 'the agent server answers',
    set: { remote_reconciled: true },
    also: async (trx) => {
      await trx.updateTable('deployments').set({ active_revision_id: claim.id }).where('id', '=', claim.deployment_id).execute()
      await makeServing(trx, agent)
    },
  }
  try {
    const settled = await settleStubbornly(db, claim, swap, log)
    // The commit may have been made although its answer was lost on the way.
    if (settled === 'settled' || (settled === 'lost' && (await isServing(db, agent)))) {
      await onSwap()
      return
    }
    await host.end(agent, { graceMs: 0 })
    if (settled === 'interrupted') await settleStubbornly(db, claim, INTERRUPTION, log)
  } catch (error) {
    await host.end(agent, { graceMs: 0 })
    const settlement = settlementOf(claim, error, describeDeployError)
    // What the database refused five times is left to the end of the lease: another worker takes the revision up.
    if (!(error instanceof StartFailure) || settlement === null) throw error
    await settleStubbornly(db, claim, settlement, log)
  }
}

async function isServing(db: Database, agent: HostedAgent): Promise<boolean> {
  const row = await db.selectFrom('agents').select('state').where('id', '=', agent.id).executeTakeFirst()
  return row?.state === 'serving'
}

/** Whether there is something to start here: an image's name, or what was built, which must still be on this node's disk. */
export async function isReady({ source, built }: Pick<RevisionRow, 'source' | 'built'>, builds?: string): Promise<boolean> {
  if (source === 'external_docker') return true
  if (built === null) return false
  // The folder of another node of this machine is that node's: it sweeps it, and may be on it again in a moment.
  if (builds !== undefined && !built.directory.startsWith(builds + path.sep)) return false
  return access(built.directory).then(
    () => true,
    () => false,
  )
}

/** Back to the build. Counted when this node should have it: a disk that loses every build must not go on for ever. */
function withoutBuild(claim: Claim, nodeId: string): Settlement {
  const losses = claim.losses + (claim.built_on === null || claim.built_on === nodeId ? 1 : 0)
  if (losses > MAX_LOSSES) {
    const reason = 'what was built for this revision is gone from this machine: make a new revision'
    return { to: 'DEPLOY_FAILED', reason, set: { losses } }
  }
  return {
    to: 'AWAITING_BUILD',
    reason: 'what was built for it is gone: it is built again',
    set: { losses, built: null, built_on: null },
  }
}

function describeDeployError(error: unknown): string {
  if (error instanceof StartFailure) return error.message
  return `the deploy met an error of the platform: ${(error as Error).message}`
}
