import { randomUUID } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { sql } from 'kysely'
import type { Database, DeploymentRow, RevisionRow } from '../../database/schema.ts'
import type { Log } from '../../log.ts'
import type { SecretBox } from '../../secrets.ts'
import { agentSecrets } from '../environment.ts'
import { openRevisionLog, type StoredLog } from '../logs.ts'
import { BuildFailure, type BuildRequest, type BuiltAgent } from '../sources/build.ts'
import type { BuildEffects } from '../sources/source.ts'
import { type Claim, claimRevision } from './lease.ts'
import { INTERRUPTION, type Settlement, settlementOf, settleStubbornly } from './settle.ts'
import { type Hands, hold } from './work.ts'

export type Build = (request: BuildRequest, effects: BuildEffects) => Promise<BuiltAgent>

/** What it takes to build a revision of this installation. */
export interface BuildOptions {
  readonly db: Database
  readonly secretBox: SecretBox
  readonly log: Log
  /** Folder of all builds; each revision has its own in it. */
  readonly builds: string
  readonly npmCache: string
  readonly limitMs: number
  readonly build: Build
  readonly tokenFor: (repoUrl: string) => string | undefined
  readonly nodeId: string
}

export interface BuildWorkerOptions extends BuildOptions {
  readonly hands: Hands
}

/** Builds the next revision that waits for it. @returns whether there was one. */
export async function buildNext(options: BuildWorkerOptions): Promise<boolean> {
  const { db, log } = options
  const claim = await claimRevision(db, { from: 'AWAITING_BUILD', to: 'BUILDING', owner: options.nodeId, log })
  if (claim === null) return false
  const settlement = await workOn(claim, options)
  if (settlement === null) return true
  const settled = await settleStubbornly(db, claim, settlement, log)
  if (settled === 'interrupted') await settleStubbornly(db, claim, INTERRUPTION, log)
  return true
}

async function workOn(claim: Claim, options: BuildWorkerOptions): Promise<Settlement | null> {
  const { db, log, hands, limitMs } = options
  let lines: StoredLog | undefined
  try {
    const deployment = await db.selectFrom('deployments').selectAll().where('id', '=', claim.deployment_id).executeTakeFirst()
    // Removed a moment ago, and the revision with it.
    if (deployment === undefined) return null
    const prepared = prepareBuild({ revision: claim, deployment, options })
    lines = prepared.lines
    const built = await hold(db, { claim, limitMs, hands, work: prepared.run })
    return {
      to: 'AWAITING_DEPLOY',
      reason: `built from commit ${built.commitSha}`,
      set: { built: JSON.stringify(built), built_on: options.nodeId, repo_commit_sha: built.commitSha },
    }
  } catch (error) {
    const settlement = settlementOf(claim, error, describeBuildError)
    if (settlement !== null) lines?.write(settlement.to === 'BUILD_FAILED' ? 'ERROR' : 'WARNING', settlement.reason)
    if (!(error instanceof BuildFailure)) log.info({ revisionId: claim.id, error: (error as Error).message }, 'a build did not finish')
    return settlement
  } finally {
    await lines?.close()
  }
}

/**
 * Builds the commit of a deployed revision once more, because what was built is gone from the disk. The revision stays as it is.
 * @throws {BuildFailure} when the commit can no longer be built; the signal's reason when it was aborted.
 */
export async function buildAgain(
  options: BuildOptions,
  { revision, deployment, signal }: { revision: RevisionRow; deployment: DeploymentRow; signal: AbortSignal },
): Promise<BuiltAgent> {
  const { lines, run } = prepareBuild({ revision, deployment, options })
  try {
    lines.write('WARNING', 'What was built is gone from this machine: building it again')
    const built = await run(AbortSignal.any([signal, AbortSignal.timeout(options.limitMs)]))
    const set = { built: JSON.stringify(built), built_on: options.nodeId }
    await options.db.updateTable('revisions').set(set).where('id', '=', revision.id).execute()
    return built
  } catch (error) {
    lines.write('ERROR', describeBuildError(error))
    throw error
  } finally {
    await lines.close()
  }
}

interface Preparation {
  readonly revision: RevisionRow
  readonly deployment: DeploymentRow
  readonly options: BuildOptions
}

/** The log of a build, and the build itself. A commit that is known is kept to: it is what the revision is. */
function prepareBuild({ revision, deployment, options }: Preparation): {
  lines: StoredLog
  run: (signal: AbortSignal) => Promise<BuiltAgent>
} {
  const { db, log } = options
  const secrets = agentSecrets(options.secretBox, revision)
  const config = deployment.source_config
  const token = options.tokenFor(config.repo_url ?? '')
  const known = revision.repo_commit_sha
  const source = {
    repoUrl: config.repo_url ?? '',
    ref: revision.repo_ref ?? 'HEAD',
    ...(token === undefined ? {} : { token }),
    ...(known === null ? {} : { commit: known }),
  }
  // Each attempt has a folder of its own: processes of one that was lost may write for a moment longer.
  const directory = path.join(options.builds, revision.id, randomUUID().slice(0, 8))
  const lines = openRevisionLog(db, {
    revisionId: revision.id,
    type: 'build',
    secrets: [...Object.values(secrets), ...(token === undefined ? [] : [token])],
    log,
  })
  const request = {
    source,
    configPath: revision.graph_config_path ?? '',
    directory,
    installCommand: config.install_command,
    buildCommand: config.build_command,
    env: secrets,
    npmCache: options.npmCache,
  }
  const run = async (signal: AbortSignal) => {
    let noted: Promise<void> = Promise.resolve()
    const onCommit = (commitSha: string) => {
      noted = noteCommit(options, revision, commitSha)
    }
    await removeAttempts(path.dirname(directory))
    try {
      const effects = { log: lines, signal, onCommit }
      const built = await options.build(request, effects)
      if (known !== null && built.commitSha !== known) throw movedOn(source.ref, known, built.commitSha)
      return built
    } finally {
      await noted
    }
  }
  return { lines, run }
}

/** Tells the revision's commit while it is still being built. */
async function noteCommit({ db, log }: BuildOptions, revision: RevisionRow, commitSha: string): Promise<void> {
  try {
    let update = db.updateTable('revisions').set({ repo_commit_sha: commitSha, updated_at: sql<Date>`clock_timestamp()` })
    if (revision.lease_token !== null) update = update.where('lease_token', '=', revision.lease_token)
    await update.where('id', '=', revision.id).execute()
  } catch (error) {
    log.warn({ revisionId: revision.id, error: (error as Error).message }, 'the commit of a revision could not be noted yet')
  }
}

/** The folders of earlier attempts; the agent's state, which lies beside them, stays. */
async function removeAttempts(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  const attempts = names.filter((name) => /^[0-9a-f]{8}$/.test(name))
  await Promise.all(attempts.map((name) => rm(path.join(folder, name), { recursive: true, force: true }).catch(() => undefined)))
}

function movedOn(ref: string, known: string, found: string): BuildFailure {
  return new BuildFailure(`The revision is commit ${known}, but ${ref} is at ${found} by now: make a new revision.`)
}

function describeBuildError(error: unknown): string {
  if (error instanceof BuildFailure) return error.message
  return `the build met an error of the platform: ${(error as Error).message}`
}
