import type { Deps } from './deps.ts'
import type { ActionFailure } from './report/error-codes.ts'
import { requestFailure } from './report/request-failure.ts'
import { type SmokeTest, smokeTest } from './smoke/smoke-test.ts'
import { superseded } from './verify.ts'

/**
 * Proves that a revision that serves answers as it should, if a test is wanted, and that it was this revision that answered.
 * Throws `E_SMOKE_TEST`, or `E_SUPERSEDED` when another revision has taken its place meanwhile: what was seen may be that one's.
 */
export async function prove({
  deploymentId,
  revisionId,
  test,
  deps,
}: {
  deploymentId: string
  revisionId: string
  test: SmokeTest | undefined
  deps: Deps
}): Promise<void> {
  if (test === undefined) return
  try {
    await smokeTest({ test, deps })
  } catch (error) {
    throw (await replacement()) ?? error
  }
  const replaced = await replacement((error) => {
    throw requestFailure(error, 'The smoke test passed, but verifying that the same revision still serves')
  })
  if (replaced !== undefined) throw replaced

  async function replacement(onError: (error: unknown) => void = () => undefined): Promise<ActionFailure | undefined> {
    try {
      const { active_revision_id: active } = await deps.controlPlane.getDeployment(deploymentId, deps.signal)
      if (active === null || active === undefined || active === revisionId) return undefined
      deps.journal.set('smoke-test', 'skipped')
      return superseded(revisionId, active)
    } catch (error) {
      onError(error)
      return undefined
    }
  }
}
