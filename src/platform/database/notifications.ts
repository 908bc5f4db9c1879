import { sql } from 'kysely'
import pg from 'pg'
import type { Log } from '../log.ts'
import type { Database, DatabaseTransaction } from './schema.ts'

/** What processes on one database tell each other: there is work for the queue, or agents serve somewhere else now. */
export const TOPICS = ['work', 'agents'] as const
export type Topic = (typeof TOPICS)[number]

const CHANNEL = 'deploy_agent_server'

/** Tells every process, this one included, when the transaction commits. */
export async function announce(db: Database | DatabaseTransaction, topic: Topic): Promise<void> {
  await sql`select pg_notify(${CHANNEL}, ${topic})`.execute(db)
}

export interface Notifications {
  on(topic: Topic, listener: () => void): void
  /** The connection that listens: a session of this process, whose locks in the database end with it. Null while it is away. */
  session(): pg.Client | null
  close(): Promise<void>
}

export interface ListenOptions {
  readonly url: string
  readonly log: Log
  /** Run on each new connection, before it counts as one. */
  readonly onSession?: (session: pg.Client) => Promise<void>
}

/**
 * Listens on a connection of its own. Announcements are a shortcut: whoever listens also looks at intervals, so a lost connection costs a
 * second, never work. After each reconnection every listener is called once, for what may have been missed.
 */
export async function listen({ url, log, onSession = async () => undefined }: ListenOptions): Promise<Notifications> {
  const listeners: Record<Topic, (() => void)[]> = { work: [], agents: [] }
  let closed = false
  let client: pg.Client | null = null
  let timer: NodeJS.Timeout | undefined

  const connect = async () => {
    let isLost = false
    // What is heard late of a connection that has been replaced is nothing new.
    const lose = () => {
      isLost = true
      if (client === fresh) reconnect()
    }
    const fresh = new pg.Client({
      connectionString: url,
      application_name: 'deploy-agent-server notifications',
      keepAlive: true,
      connectionTimeoutMillis: 10_000,
      query_timeout: 10_000,
    })
    fresh.on('error', (error) => {
      log.warn({ error: error.message }, 'the notification connection was lost')
      lose()
    })
    fresh.on('end', lose)
    fresh.on('notification', ({ payload }) => {
      for (const topic of TOPICS) if (payload === topic) for (const listener of listeners[topic]) listener()
    })
    try {
      await fresh.connect()
      await fresh.query(`listen ${CHANNEL}`)
      await onSession(fresh)
      if (isLost) throw new Error('the notification connection was lost while it was made')
    } catch (error) {
      await fresh.end().catch(() => undefined)
      throw error
    }
    client = fresh
    // Closed while it was connecting.
    if (closed) await fresh.end()
  }
  const reconnect = () => {
    client = null
    if (closed || timer !== undefined) return
    timer = setTimeout(() => {
      timer = undefined
      connect().then(
        () => TOPICS.forEach((topic) => listeners[topic].forEach((listener) => listener())),
        () => reconnect(),
      )
    }, 1000)
  }

  await connect()
  return {
    on: (topic, listener) => {
      listeners[topic].push(listener)
    },
    session: () => client,
    close: async () => {
      closed = true
      clearTimeout(timer)
      await client?.end()
    },
  }
}
