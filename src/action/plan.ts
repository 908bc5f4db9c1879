import type { DeploymentAnswer } from '../contract/answers.ts'
import { changesOf } from './compare.ts'
import type { Inputs } from './inputs.ts'
import type { Change } from './journal.ts'

/** What a deploy would do: to a new deployment when there is none yet. */
export function planOf(inputs: Inputs, deployment: DeploymentAnswer | null): Change[] {
  if (deployment !== null) return [...changesOf(inputs, deployment), ...commitChange(inputs, deployment)]
  const { source } = inputs
  const fields: [string, string | undefined][] = [
    ['source', source.kind],
    ...(source.kind === 'git_host'
      ? ([
          ['repo_url', source.repoUrl],
          ['repo_ref', source.repoRef],
          ['graph_config_path', source.configPath],
          ['build_on_push', String(inputs.buildOnPush ?? false)],
          ['integration_id', inputs.integrationId],
        ] as [string, string | undefined][])
      : ([['image_uri', source.imageUri]] as [string, string | undefined][])),
    ['deployment_type', inputs.deploymentType],
    ['source_config', Object.keys(inputs.sourceConfig).join(', ') || undefined],
    [
      'secrets',
      inputs.secrets
        ?.map(({ name }) => name)
        .toSorted()
        .join(', ') || undefined,
    ],
  ]
  return fields.flatMap(([field, wanted]) => (wanted === undefined ? [] : [{ field, live: '(none)', wanted }]))
}

/** The commit that serves and the one that is wanted, where both are known: a branch stays the same when it moves. */
function commitChange({ source }: Inputs, deployment: DeploymentAnswer): Change[] {
  const live = deployment.source_revision_config.repo_commit_sha
  const wanted = source.kind === 'git_host' ? (source.commit ?? source.eventCommit) : undefined
  if (wanted === undefined || live?.toLowerCase() === wanted) return []
  return [{ field: 'commit', live: live ?? '(not told)', wanted }]
}

/** The plan as lines for the log. */
export function planLines(changes: readonly Change[]): string[] {
  if (changes.length === 0) return ['No field differs: a deploy would make a new revision from the same source.']
  return changes.map(({ field, live, wanted }) => `${field}: ${live} -> ${wanted}`)
}
