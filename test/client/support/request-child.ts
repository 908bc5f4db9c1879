/**
 * Makes one GET with the settings in CHILD_REQUEST (JSON) and prints how it ended. Never calls process.exit: that the process
 * ends by itself is part of what is tested.
 */
import { realEffects } from '../../../src/client/effects.ts'
import { RequestFailure } from '../../../src/client/failure.ts'
import { createTransport } from '../../../src/client/transport.ts'

const { baseUrl, timeoutMs, attempts, cancelAfterMs } = JSON.parse(process.env['CHILD_REQUEST'] ?? '{}') as {
  baseUrl: string
  timeoutMs?: number
  attempts?: number
  cancelAfterMs?: number
}
const transport = createTransport({
  baseUrl,
  headers: { 'X-Api-Key': 'the-key-of-the-child' },
  redact: (text) => text,
  userAgent: 'deploy-agent-server/test',
  effects: { ...realEffects, random: () => 0 },
  policy: { attempts: attempts ?? 1 },
})
const controller = new AbortController()
if (cancelAfterMs !== undefined) setTimeout(() => controller.abort(), cancelAfterMs)
try {
  const { body } = await transport.request({
    method: 'GET',
    path: '/v2/x',
    timeoutMs: timeoutMs ?? 5000,
    signal: controller.signal,
  })
  process.stdout.write(JSON.stringify({ body, settledAt: Date.now() }))
} catch (error) {
  if (!(error instanceof RequestFailure)) throw error
  process.stdout.write(JSON.stringify({ failure: { ...error, message: error.message }, settledAt: Date.now() }))
}
