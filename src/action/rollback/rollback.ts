import { type Deadline, startDeadline } from '../../client/deadline.ts'
import type { Deps } from '../deps.ts'
import type { Inputs } from '../inputs.ts'
import type { MadeRevision } from '../make-revision.ts'
import { prove } from '../prove.ts'
import { type ActionFailure, toFailure } from '../report/error-codes.ts'
import { waitForRevision } from '../wait.ts'
import { type Aside, setAside } from './aside.ts'
import { bringBack } from './bring-back.ts'
import { goodServes, interference, needsRevision, reasonToLeave, type Scene } from './decide.ts'
import type { LastGood } from './last-good.ts'
import { differentCommit, imageDoubt, secretsSentence, unfinished } from './sentences.ts'
import { survey } from './survey.ts'

type Rollback = {
  inputs: Inputs
  good: LastGood
  made: MadeRevision
  deps: Deps
}

/** What a rollback did: whether the last good source serves now, and the story for people. */
type Ending = { rolledBack: boolean; story: string }

/**
 * Brings the last good source back after a failure of the revision that this step made. Returns the failure to report: the same
 * one, with what became of the rollback; its status is `rolled-back` when the last good source serves and has passed the smoke
 * test, if there is one. Never throws.
 */
export async function rollBack({
  failure,
  good,
  ...rest
}: Omit<Rollback, 'good'> & { failure: ActionFailure; good: LastGood | null }): Promise<ActionFailure> {
  const reason = reasonToLeave(failure) ?? (good === null ? 'there is no earlier revision to go back to' : undefined)
  if (reason !== undefined || good === null) return failure.with({ aftermath: `Nothing was rolled back: ${reason}.` })
  const { inputs, deps } = rest
  const { log, journal, signal } = deps
  log.info(`Rolling back to the revision ${good.revisionId}, because of ${failure.code}: ${failure.message.split('\n')[0]}`)
  const aside = setAside(deps)
  const deadline = startDeadline({ timeoutMs: inputs.timeoutMs, parent: signal, effects: deps.effects })
  try {
    const { rolledBack, story } = await attempt({ ...rest, good, aside, deadline })
    if (rolledBack) aside.commit()
    log.info(story)
    return failure.with({ aftermath: story, ...(rolledBack ? { status: 'rolled-back' as const } : {}) })
  } catch (error) {
    const second = toFailure(error)
    const story = await unfinished({ second, aside, asked: aside.asked(), deploymentId: rest.made.deploymentId, deps })
    log.info(story)
    if (signal.aborted) return failure.with({ aftermath: story, status: 'cancelled', code: 'E_CANCELLED' })
    return failure.with({ aftermath: story })
  } finally {
    deadline.stop()
    journal.save('pending', '')
    journal.setRollback({
      goodRevisionId: good.revisionId,
      failedRevisionId: rest.made.revisionId,
      revisionId: aside.output('revision-id'),
      commit: aside.output('commit-sha'),
      ref: good.source.repo_ref ?? undefined,
      configPath: good.source.graph_config_path ?? undefined,
      status: aside.output('revision-status'),
      transitions: aside.transitions,
      smokeTest: aside.smokeTest(),
      logTail: aside.logTail(),
    })
  }
}

async function attempt({
  inputs,
  good,
  made,
  aside,
  deadline,
}: Omit<Rollback, 'deps'> & { aside: Aside; deadline: Deadline }): Promise<Ending> {
  const { deploymentId } = made
  const { deps: own } = aside
  const { deployment, scene } = await survey({
    deploymentId,
    revisionId: made.revisionId,
    good,
    signal: deadline.signal,
    deps: own,
  })
  const someoneElse = interference(scene)
  if (someoneElse !== undefined) return { rolledBack: false, story: `Nothing was rolled back: ${someoneElse}.` }
  const secretsSent = (inputs.secrets?.length ?? 0) > 0
  const secrets = secretsSentence(inputs)
  if (!needsRevision(scene, { secretsSent })) return await keep({ inputs, good, deploymentId, aside })
  own.journal.save('pending', `bring back the revision ${good.revisionId} of '${deployment.name}'`)
  aside.ask()
  const brought = await bringBack({ deployment, scene, signal: deadline.signal, deps: own })
  if ('impossible' in brought) {
    if (!goodServes(scene)) {
      const about = scene.activeRevisionId === good.revisionId ? ', or is about to' : ''
      const serves =
        scene.activeRevisionId === null
          ? 'No revision serves'
          : `The revision ${made.revisionId}, which failed, goes on serving${about}`
      return { rolledBack: false, story: `The rollback is not possible: ${brought.impossible}. ${serves}.${secrets.kept}` }
    }
    const { story } = await keep({ inputs, good, deploymentId, aside })
    const left = `The deployment's settings stay those of the failed revision (${brought.impossible}).`
    return { rolledBack: true, story: `${story} ${left}${secrets.kept}` }
  }
  const { revisionId, how } = brought
  own.journal.set('revision-id', revisionId)
  own.journal.save('revisionId', revisionId)
  own.log.info(`The revision ${revisionId} is to bring back what ${good.revisionId} was made from.`)
  // Interrupted or left half-way, a rollback would leave the revision that failed in service.
  const patient: Inputs = { ...inputs, timeoutMs: deadline.remainingMs(), onTimeout: 'leave', source: withoutCommit(inputs) }
  await waitForRevision({ inputs: patient, deploymentId, revisionId, previousId: scene.activeRevisionId ?? null, deps: own })
  const different = differentCommit({ good, commit: aside.output('commit-sha'), how })
  if (different !== undefined) {
    return { rolledBack: false, story: `The rollback did not bring the last good commit back: ${different}${secrets.of(how)}` }
  }
  const pushes = await restoreBuildOnPush({ inputs, scene, deploymentId, revisionId, signal: deadline.signal, deps: own })
  await prove({ deploymentId, revisionId, test: inputs.smokeTest, deps: own })
  const tested = inputs.smokeTest === undefined ? '' : ' and passes the smoke test'
  return {
    rolledBack: true,
    story: `Rolled back: the revision ${revisionId}, ${how} from ${good.revisionId}, serves in place of ${made.revisionId}${tested}.${imageDoubt(good)}${pushes}${secrets.of(how)}`,
  }
}

/** The last good revision never stopped serving, and the deployment's settings are as they were: it only has to prove itself. */
async function keep({
  inputs,
  good,
  deploymentId,
  aside,
}: {
  inputs: Inputs
  good: LastGood
  deploymentId: string
  aside: Aside
}): Promise<Ending> {
  const { journal } = aside.deps
  const { revisionId } = good
  journal.set('revision-id', revisionId)
  journal.set('revision-status', 'DEPLOYED')
  journal.set('commit-sha', good.source.repo_commit_sha)
  journal.set('image-uri', good.source.image_uri)
  await prove({ deploymentId, revisionId, test: inputs.smokeTest, deps: aside.deps })
  const tested = inputs.smokeTest === undefined ? '' : ', and it passes the smoke test'
  return { rolledBack: true, story: `Rolled back: the revision ${revisionId} never stopped serving${tested}.` }
}

/** The commit of the workflow is that of the revision that failed. */
function withoutCommit({ source }: Inputs): Inputs['source'] {
  if (source.kind !== 'git_host') return source
  const { kind, repoUrl, repoRef, configPath } = source
  return { kind, repoUrl, repoRef, configPath }
}

/** Turns `build_on_push` back to what it was, where the update of this step had changed it. Returns a sentence when it could not. */
async function restoreBuildOnPush({
  inputs,
  scene,
  deploymentId,
  revisionId,
  signal,
  deps,
}: {
  inputs: Inputs
  scene: Scene
  deploymentId: string
  revisionId: string
  signal: AbortSignal
  deps: Deps
}): Promise<string> {
  const { buildOnPush } = scene.good
  if (inputs.buildOnPush === undefined || buildOnPush === null || buildOnPush === inputs.buildOnPush) return ''
  try {
    await deps.controlPlane.patchDeployment({
      id: deploymentId,
      body: { source_config: { build_on_push: buildOnPush } },
      previousLatestRevisionId: revisionId,
      signal,
    })
    deps.log.info(`build_on_push is ${buildOnPush} again.`)
    return ''
  } catch (error) {
    return ` build_on_push could not be set back to ${buildOnPush}: ${toFailure(error).message}`
  }
}
