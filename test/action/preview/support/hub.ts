import { vi } from 'vitest'
import type { DeploymentRecord, DeploymentRecordStatus, Github, PullRequest } from '../../../../src/action/github/github.ts'

const unused = (): never => {
  throw new Error('this test has no use for this operation of GitHub')
}

export type Hub = Github & {
  pullRequests: Map<number, PullRequest>
  records: DeploymentRecord[]
  statuses: Map<number, DeploymentRecordStatus[]>
  add: (number: number, changes?: Partial<PullRequest>) => PullRequest
}

/** The part of GitHub that previews read, in memory. `pause` is awaited before each answer. */
export function createHub(pause: () => Promise<void> = async () => undefined): Hub {
  const pullRequests = new Map<number, PullRequest>()
  const records: DeploymentRecord[] = []
  const statuses = new Map<number, DeploymentRecordStatus[]>()
  return {
    pullRequests,
    records,
    statuses,
    add: (number: number, changes: Partial<PullRequest> = {}) => {
      const pullRequest: PullRequest = {
        number,
        state: 'open',
        headRef: 'feature',
        headSha: 'b'.repeat(40),
        headRepository: 'acme/agents',
        ...changes,
      }
      pullRequests.set(number, pullRequest)
      return pullRequest
    },
    getPullRequest: vi.fn(async (number: number): Promise<PullRequest | null> => {
      await pause()
      const found = pullRequests.get(number)
      return found === undefined ? null : { ...found }
    }),
    listDeployments: vi.fn(async () => records),
    listDeploymentStatuses: vi.fn(async (id: number) => statuses.get(id) ?? []),
    commitOfTag: unused,
    createDeployment: unused,
    createDeploymentStatus: unused,
    listComments: unused,
    createComment: unused,
    updateComment: unused,
  } as unknown as Hub
}
