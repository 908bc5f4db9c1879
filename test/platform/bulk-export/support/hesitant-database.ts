import { createServer, connect, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** End of a COPY's rows, and the beginning of what says how many they were. */
const END_OF_ROWS = Buffer.from([0x63, 0, 0, 0, 4, 0x43])

/** A way to a PostgreSQL on which the number of copied rows comes a moment after the last row, as it may on any network. */
export async function startHesitantDatabase(
  url: string,
): Promise<{ url: string; hesitated: () => number; stop(): Promise<void> }> {
  const target = new URL(url)
  let hesitated = 0
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    client.on('error', () => upstream.destroy())
    upstream.on('error', () => client.destroy())
    client.pipe(upstream)
    void (async () => {
      for await (const chunk of upstream as AsyncIterable<Buffer>) {
        const at = chunk.indexOf(END_OF_ROWS)
        if (at === -1) {
          client.write(chunk)
          continue
        }
        hesitated += 1
        client.write(chunk.subarray(0, at + END_OF_ROWS.length - 1))
        await sleep(150)
        client.write(chunk.subarray(at + END_OF_ROWS.length - 1))
      }
      client.end()
    })().catch(() => client.destroy())
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const through = new URL(url)
  through.port = String((server.address() as AddressInfo).port)
  return {
    url: through.href,
    hesitated: () => hesitated,
    stop: () => new Promise((resolve) => void server.close(() => resolve())),
  }
}
