import { expect } from 'vitest'
import type { Inputs } from '../../../src/action/inputs.ts'
import { run } from '../../../src/action/main.ts'
import type { ActionFailure } from '../../../src/action/report/error-codes.ts'
import type { ControlPlane } from '../../../src/client/control-plane.ts'
import { fakeDeps, inputs, type TestDeps } from './deps.ts'

export type EndedStep = TestDeps & {
  /** Its status, or the code of its failure. */
  ended: string
  message: string
  failure: ActionFailure | undefined
}

/** Runs a step that deploys, and gives what it came to. */
export async function step(wanted: Partial<Inputs> = {}, deps: TestDeps = fakeDeps()): Promise<EndedStep> {
  const outcome = await run(inputs(wanted), deps)
  const failure = 'failure' in outcome ? outcome.failure : undefined
  return { ...deps, ended: 'status' in outcome ? outcome.status : outcome.failure.code, message: failure?.message ?? '', failure }
}

/** Nothing was asked of the control plane that changes something. */
export function expectNoChange({ createDeployment, patchDeployment, interruptRevision }: ControlPlane): void {
  for (const change of [createDeployment, patchDeployment, interruptRevision]) expect(change).not.toHaveBeenCalled()
}
