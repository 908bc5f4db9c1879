import type { Level, PermissionName } from '../github-double/state.ts'
import type { GithubRequestSeen } from '../github-double.ts'
import { ROUTES } from '../github-double/routes.ts'
import type { Plain } from './expression.ts'

export type Permissions = Record<PermissionName, Level>

const NAMES = ['contents', 'deployments', 'issues', 'pull-requests'] as const

/** What a job's token may: what the job says, else the workflow, else what new repositories give. `fork`: never to write. */
export function permissionsOf(options: { job: Plain; workflow: Plain; fork: boolean }): Permissions {
  const said = options.job ?? options.workflow ?? { contents: 'read' }
  const level = (name: PermissionName): Level => {
    if (said === 'read-all') return 'read'
    if (said === 'write-all') return 'write'
    return ((said as Record<string, Level>)[name] ?? 'none') as Level
  }
  const capped = (given: Level): Level => (options.fork && given === 'write' ? 'read' : given)
  return Object.fromEntries(NAMES.map((name) => [name, capped(level(name))])) as Permissions
}

/** What a token would have needed at the least for these requests. */
export function permissionsUsed(requests: readonly GithubRequestSeen[]): Permissions {
  const used: Permissions = { contents: 'none', deployments: 'none', issues: 'none', 'pull-requests': 'none' }
  for (const { operation } of requests) {
    // Of several that would do, a pull request's own permission is the last.
    const [name, level] = (ROUTES[operation]?.needs.at(-1)?.split(': ') ?? []) as [PermissionName?, Level?]
    if (name === undefined || level === undefined || used[name] === 'write') continue
    used[name] = level
  }
  return used
}
