import { connect, createServer, type AddressInfo } from 'node:net'

/** A way to a PostgreSQL on which the answer to a commit can be lost, and the connection with it. */
export interface ForgetfulDatabase {
  readonly url: string
  forgetNextCommit(): void
  /** How many answers were lost. */
  forgotten(): number
  stop(): Promise<void>
}

/** What a server says when a transaction is in the database: a command that is complete. */
const COMMITTED = Buffer.from('COMMIT\0')

export async function startForgetfulDatabase(url: string): Promise<ForgetfulDatabase> {
  const target = new URL(url)
  let armed = false
  let forgotten = 0
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    client.on('error', () => upstream.destroy())
    upstream.on('error', () => client.destroy())
    client.once('close', () => upstream.destroy())
    upstream.once('close', () => client.destroy())
    client.pipe(upstream)
    upstream.on('data', (chunk: Buffer) => {
      if (!armed || !chunk.includes(COMMITTED)) return void client.write(chunk)
      armed = false
      forgotten += 1
      client.destroy()
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const through = new URL(url)
  through.port = String((server.address() as AddressInfo).port)
  return {
    url: through.href,
    forgetNextCommit: () => {
      armed = true
    },
    forgotten: () => forgotten,
    stop: () => new Promise((resolve) => void server.close(() => resolve())),
  }
}
