import { startDeadline } from '../../client/deadline.ts'
import type { DeploymentAnswer } from '../../contract/answers.ts'
import type { Deps } from '../deps.ts'
import { deploy } from '../deploy.ts'
import { findDeployment } from '../find.ts'
import { GithubFailure } from '../github/failure.ts'
import { findProof } from '../github/proof.ts'
import type { PromoteInputs } from '../inputs.ts'
import type { Status } from '../registry.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { requestFailure } from '../report/request-failure.ts'
import { servingRevisionId } from '../unchanged.ts'
import { type Evidence, judge } from './judge.ts'

/** Deploys exactly what another deployment has proven (see `judge`). Returns and throws as `deploy`. */
export async function promote(inputs: PromoteInputs, deps: Deps): Promise<Status> {
  const { log, journal } = deps
  const evidence = await gather(inputs, deps)
  const { deployment, revision, proof } = evidence
  const source = judge(evidence)
  const what = source.kind === 'git_host' ? `${source.repoRef} at ${source.commit ?? ''}` : source.imageUri
  const sentence =
    `Promoting ${what}: the revision ${revision.id} of '${deployment.name}' serves it, ` +
    `and passed its smoke test${proof === null ? '' : ` at ${new Date(proof.at).toISOString()} in ${proof.environment}`}.`
  log.info(sentence)
  journal.note(sentence)
  const integrationId = inputs.integrationId ?? deployment.source_config.integration_id ?? undefined
  const { smokeTest } = inputs
  return await deploy(
    {
      ...inputs,
      source,
      ...(source.kind === 'git_host' ? { buildOnPush: false, ...(integrationId === undefined ? {} : { integrationId }) } : {}),
      ...(smokeTest === undefined || source.kind !== 'git_host'
        ? {}
        : { smokeTest: { ...smokeTest, configPath: source.configPath } }),
    },
    deps,
  )
}

async function gather(inputs: PromoteInputs, deps: Deps): Promise<Evidence> {
  const { github, effects, signal, log } = deps
  const { promote: wish } = inputs
  const deadline = startDeadline({ timeoutMs: inputs.timeoutMs, parent: signal, effects })
  try {
    const deployment = await findProven(inputs, deadline.signal, deps)
    log.info(`Promoting from '${deployment.name}' (${deployment.id}).`)
    if (github === undefined) throw withoutGithub()
    const revisionId = servingRevisionId(deployment)
    if (revisionId === null) {
      throw new ActionFailure({
        code: 'E_CONFLICT',
        happened: `The deployment '${deployment.name}' has no revision that serves: there is nothing to promote.`,
        tried: 'Nothing was changed.',
        next: `Deploy '${deployment.name}' first, and see its smoke test pass.`,
      })
    }
    const revision = await deps.controlPlane
      .getRevision({ deploymentId: deployment.id, revisionId, signal: deadline.signal })
      .catch((error: unknown) => {
        throw requestFailure(error, `Reading the revision ${revisionId}`)
      })
    // Not that of the event: a pull request may come from another repository, whose tags and records are not asked for.
    const { serverUrl, repository } = deps.context
    const repoUrl = repository === '' ? undefined : `${serverUrl}/${repository}`
    const { tag } = wish
    const tagCommit = tag === undefined ? undefined : await ask(() => github.commitOfTag(tag, deadline.signal))
    const { controlPlaneUrl } = inputs
    const names = { deploymentName: deployment.name, deploymentId: deployment.id, revisionId, controlPlaneUrl }
    const proof = await ask(() => findProof(github, names, deadline.signal))
    return { wish, deployment, revision, tagCommit, proof, repoUrl }
  } finally {
    deadline.stop()
  }
}

/** The deployment that was proven. It has to exist, and to be another one than the target. */
async function findProven(
  { promote: { from }, target }: PromoteInputs,
  signal: AbortSignal,
  deps: Deps,
): Promise<DeploymentAnswer> {
  const found = await findDeployment({ inputs: { target: from }, signal, deps })
  if (found === null) {
    throw new ActionFailure({
      code: 'E_NOT_FOUND',
      happened: `There is no deployment named '${'name' in from ? from.name : from.id}' to promote from.`,
      tried: 'Nothing was changed.',
      next: 'Check promote-from and workspace-id: it is the name or the id of the deployment that was proven.',
    })
  }
  if ('name' in target ? found.name !== target.name : found.id !== target.id) return found
  throw new ActionFailure({
    code: 'E_INPUT',
    happened: `promote-from names '${found.name}' (${found.id}), which is the deployment that is to be changed.`,
    tried: 'Nothing was changed.',
    next: 'Name the deployment that was proven in promote-from.',
  })
}

function withoutGithub(): ActionFailure {
  return new ActionFailure({
    code: 'E_INPUT',
    happened:
      'github-token is empty, or GITHUB_REPOSITORY is: the proof of a smoke test is a record of GitHub, and cannot be read.',
    tried: 'Nothing was changed.',
    next: 'Give github-token, and the job the permissions contents: read and deployments: read.',
  })
}

async function ask<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof GithubFailure)) throw error
    const { code, message, tried, next } = requestFailure(error, 'Looking for the proof')
    throw new ActionFailure({ code, happened: message, tried: `${tried ?? ''} Nothing was changed.`.trim(), next, cause: error })
  }
}
