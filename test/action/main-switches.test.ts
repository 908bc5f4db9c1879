import { describe, expect, it, vi } from 'vitest'
import { COMMIT, deployment, GIT_SOURCE, NEW_REVISION_ID, OLD_REVISION_ID, revision } from './support/answers.ts'
import { fakeDeps } from './support/deps.ts'
import { expectNoChange, step } from './support/step.ts'

describe('dry-run', () => {
  it('changes nothing, and shows what would change', async () => {
    const { ended, controlPlane, journal } = await step({ dryRun: true, source: { ...GIT_SOURCE, repoRef: 'next' } })
    expect(ended).toBe('planned')
    expectNoChange(controlPlane)
    expect(journal.plan).toEqual([
      { field: 'repo_ref', live: 'main', wanted: 'next' },
      { field: 'commit', live: '(not told)', wanted: COMMIT },
    ])
  })

  it('compares with the revision that serves, not with the newest one, which may have failed', async () => {
    const newer = deployment({ latest_revision_id: NEW_REVISION_ID, source_revision_config: { repo_ref: 'broken' } })
    const served = { repo_ref: 'main', graph_config_path: 'langgraph.json', repo_commit_sha: 'b'.repeat(40) }
    const deps = fakeDeps({
      findDeploymentByName: async () => newer,
      getRevision: vi.fn(async () => revision('DEPLOYED', { id: OLD_REVISION_ID, source_revision_config: served })),
    })
    const { journal, groups } = await step({ dryRun: true, source: GIT_SOURCE }, deps)
    expect(journal.plan).toEqual([{ field: 'commit', live: 'b'.repeat(40), wanted: COMMIT }])
    expect(groups.flatMap(({ lines }) => lines)).toEqual([`commit: ${'b'.repeat(40)} -> ${COMMIT}`])
    expect(deps.controlPlane.getRevision).toHaveBeenCalledWith(expect.objectContaining({ revisionId: OLD_REVISION_ID }))
  })

  it('says when skip-unchanged would make no revision', async () => {
    const deps = fakeDeps({ getRevision: async () => revision('DEPLOYED', { id: OLD_REVISION_ID }) })
    const { ended, journal } = await step({ dryRun: true, skipUnchanged: true, source: GIT_SOURCE }, deps)
    expect(ended).toBe('planned')
    expect(journal.notes).toEqual(['skip-unchanged: a deploy would make no revision.'])
  })

  it('plans a deployment that is not there yet', async () => {
    const { ended, journal, outputs } = await step({ dryRun: true }, fakeDeps({ findDeploymentByName: async () => null }))
    expect(ended).toBe('planned')
    expect(journal.plan?.map(({ field }) => field)).toEqual([
      'source',
      'repo_url',
      'repo_ref',
      'graph_config_path',
      'build_on_push',
    ])
    expect(outputs).toEqual({ 'deployment-name': 'agent' })
  })

  it('fails where a deploy would', async () => {
    const deps = fakeDeps({ findDeploymentByName: async () => deployment({ source: 'external_docker' }) })
    expect((await step({ dryRun: true }, deps)).ended).toBe('E_CONFLICT')
  })
})

describe('skip-unchanged', () => {
  const live = { getRevision: async () => revision('DEPLOYED', { id: OLD_REVISION_ID }) }

  it('changes nothing when the live revision is what is wanted', async () => {
    const { ended, controlPlane, outputs } = await step({ skipUnchanged: true, source: GIT_SOURCE }, fakeDeps(live))
    expect(ended).toBe('unchanged')
    expectNoChange(controlPlane)
    expect(outputs).toMatchObject({ 'revision-id': OLD_REVISION_ID, 'revision-status': 'DEPLOYED', 'commit-sha': COMMIT })
  })

  it('deploys otherwise, and says why', async () => {
    const { ended, lines, controlPlane } = await step({
      skipUnchanged: true,
      source: { ...GIT_SOURCE, commit: 'b'.repeat(40), eventCommit: 'b'.repeat(40) },
    })
    expect(ended).toBe('deployed')
    expect(controlPlane.patchDeployment).toHaveBeenCalledTimes(1)
    expect(lines).toContainEqual(expect.stringMatching(/^skip-unchanged: deploying, because the live commit is /))
  })
})

describe('wait: false', () => {
  it('is green as soon as the revision was accepted', async () => {
    const { ended, outputs, controlPlane } = await step(
      { wait: false },
      fakeDeps({ getRevision: vi.fn(async () => revision('QUEUED')) }),
    )
    expect(ended).toBe('deployed')
    expect(outputs['revision-status']).toBe('QUEUED')
    expect(controlPlane.getRevision).toHaveBeenCalledTimes(1)
  })

  it('is red when the revision has failed already', async () => {
    expect((await step({ wait: false }, fakeDeps({ getRevision: async () => revision('CREATE_FAILED') }))).ended).toBe(
      'E_CREATE_FAILED',
    )
  })
})
