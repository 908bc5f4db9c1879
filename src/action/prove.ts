import type { Deps } from './deps.ts'
import type { ActionFailure } from './report/error-codes.ts'
import { requestFailure } from './report/request-failure.ts'
import { type SmokeTest, smokeTest } from './smoke/smoke-test.ts'
import { nothingServes, superseded } from './verify.ts'

/**
 * Proves that a revision that serves answers as it should, if a test is wanted, and that it was this revision that answered.
 * Throws `E_SMOKE_TEST`, or `E_SUPERSEDED` when another revision has taken its place meanwhile: what was seen may be that one's.
 * `E_PROTOCOL` when the answer was right, and the control plane says that none serves.
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
    throw replacement(await serving().catch(() => undefined)) ?? error
  }
  const active = await serving().catch((error: unknown) => {
    throw requestFailure(error, 'The smoke test passed, but verifying that the same revision still serves')
  })
  if (active === null) throw nothingServes(revisionId)
  const replaced = replacement(active)
  if (replaced !== undefined) throw replaced

  /** The revision that serves; null when none does, undefined where the control plane does not tell. */
  async function serving(): Promise<string | null | undefined> {
    return (await deps.controlPlane.getDeployment(deploymentId, deps.signal)).active_revision_id
  }

  function replacement(active: string | null | undefined): ActionFailure | undefined {
    if (active === null || active === undefined || active === revisionId) return undefined
    deps.journal.set('smoke-test', 'skipped')
    return superseded(revisionId, active)
  }
}
