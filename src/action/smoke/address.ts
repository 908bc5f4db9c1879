import { isLoopback, showAddress } from '../parse/address.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { clip, plainLine } from '../report/plain.ts'

/**
 * The address that the smoke test talks to, and with it the one place besides the control plane that gets the API key. Throws
 * `E_SMOKE_TEST` for a deployment without a usable one.
 */
export function agentAddress(address: string | undefined): { url: string; warning?: string } {
  if (address === undefined || address === '') {
    throw new ActionFailure({
      code: 'E_SMOKE_TEST',
      happened: 'The control plane tells no address of the deployment: url and source_config.custom_url are both empty.',
      tried: 'Nothing was sent to the agent.',
      next: 'Find out on the control plane where the deployment is served, or take smoke-test-input out.',
    })
  }
  const url = URL.parse(address)
  const shown = clip(plainLine(showAddress(address)), 200)
  const problem = problemOf(url)
  if (url === null || problem !== undefined) {
    throw new ActionFailure({
      code: 'E_SMOKE_TEST',
      happened: `The control plane tells '${shown}' as the address of the deployment, and it ${problem ?? 'is none'}.`,
      tried: 'Nothing was sent to the agent, the API key least of all.',
      next: 'Correct the address of the deployment on the control plane.',
    })
  }
  if (url.protocol === 'https:' || isLoopback(url.hostname)) return { url: url.href }
  return {
    url: url.href,
    warning: `The address of the deployment is plain http: the API key travels unencrypted to ${url.host}.`,
  }
}

function problemOf(url: URL | null): string | undefined {
  if (url === null) return 'is not an address'
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'is neither https nor http'
  if (url.username !== '' || url.password !== '') return 'carries credentials'
  return url.search === '' && url.hash === '' ? undefined : 'has a query or a fragment'
}
