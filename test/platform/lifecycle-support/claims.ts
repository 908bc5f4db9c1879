import { type Claim, claimRevision } from '../../../src/platform/control-plane/lifecycle/lease.ts'
import { makeRevision } from './rows.ts'
import type { LifecycleScene } from './scene.ts'

/** What the workers of a scene take into their hands. */
export function claimsOf(scene: LifecycleScene) {
  /** @throws {Error} when nothing waits for a build. */
  const claim = async (owner = 'a'): Promise<Claim> => {
    const claimed = await claimRevision(scene.db, { from: 'AWAITING_BUILD', to: 'BUILDING', owner })
    if (claimed === null) throw new Error('nothing waits')
    return claimed
  }
  /** A revision in a worker's hands, and another that waits behind it. */
  const building = async (columns: { losses?: number } = {}) => {
    const id = await makeRevision(scene.db, scene.deploymentId, { status: 'AWAITING_BUILD', ...columns })
    const waits = await makeRevision(scene.db, scene.deploymentId)
    return { id, waits, claim: await claim() }
  }
  return { claim, building }
}
