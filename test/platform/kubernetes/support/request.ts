import type { ImageStart } from '../../../../src/platform/control-plane/runtimes/runtime.ts'

/** What the host would ask a runtime for. */
export function imageStart(given: Partial<ImageStart> = {}): ImageStart {
  return {
    agentId: '3f0f6f1a-7a4e-4a55-9d37-0f2b8a1c5e01',
    deploymentId: '5b0c8f53-6f5b-4f0e-8d0b-3a4f3c6f7e02',
    deploymentName: 'support-agent',
    revisionId: '7c1d9e64-8a6c-4b1f-9e1c-4b5a4d7a8f03',
    imageUri: 'registry.example.com/team/agent:1',
    resources: null,
    listenerConfig: null,
    env: { OPENAI_API_KEY: 'sk-very-secret', LANGSMITH_HOST_REVISION_ID: '7c1d9e64-8a6c-4b1f-9e1c-4b5a4d7a8f03' },
    ...given,
  }
}
