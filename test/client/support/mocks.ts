import nock from 'nock'
import { afterAll, afterEach, beforeAll } from 'vitest'

/** The address of the control plane that is mocked. */
export const HOST = 'https://control-plane.test'

/** Lets the tests of a file reach nothing but mocks. Each test ends its own; an expected request that was not made fails it. */
export function allowOnlyMocks(): void {
  beforeAll(() => nock.disableNetConnect())
  afterEach(() => {
    const pending = nock.pendingMocks()
    nock.cleanAll()
    if (pending.length > 0) throw new Error(`requests that were not made: ${pending.join(', ')}`)
  })
  afterAll(() => nock.enableNetConnect())
}
