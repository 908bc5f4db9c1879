import type { KubeConfig, User } from '@kubernetes/client-node'
import type { Authenticator } from '@kubernetes/client-node/dist/auth.js'
import { ExecAuth } from '@kubernetes/client-node/dist/exec_auth.js'
import type { RequestContext } from '@kubernetes/client-node/dist/gen/http/http.js'
import { OpenIDConnectAuth } from '@kubernetes/client-node/dist/oidc_auth.js'
import { LoginFailure } from './cluster-error.ts'

/** Marks a user whose credentials are asked for by way of {@link guard}. */
const GUARDED = 'guarded by the platform'
/** The client refuses a header with such characters in a sentence that quotes all of it. */
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/

/** Somebody else who is asked for the credentials. */
interface Source {
  readonly name: string
  readonly ask: Authenticator['applyAuthentication']
  /** What an error of it means: nothing of its text. */
  readonly fault: (error: unknown) => string
}

/**
 * Puts the credentials of a kubeconfig into a request. A program that is asked for them may hang, waiting for somebody's password perhaps:
 * then nothing is sent, and it is not started once more beside itself. What it says of its failures is kept nowhere: it may hold a token,
 * and sentences about a cluster are read by whoever has a key of a workspace.
 */
export function createLogin(config: KubeConfig, limitMs: number): (context: RequestContext) => Promise<void> {
  const source = sourceFor(config.getCurrentUser())
  if (source !== null) guard(config, source)
  const late = () => new LoginFailure(`${source?.name ?? 'the source of the credentials'} does not end`)
  let hangs = false
  return async (context) => {
    if (hangs) throw late()
    const limit = Promise.withResolvers<never>()
    const done = config.applySecurityAuthentication(context)
    const timer = setTimeout(() => {
      hangs = true
      done.catch(() => undefined).finally(() => (hangs = false))
      limit.reject(late())
    }, limitMs)
    try {
      await Promise.race([done, limit.promise])
    } finally {
      clearTimeout(timer)
    }
    const credentials = context.getHeaders()['Authorization'] ?? ''
    if (UNSENDABLE.test(credentials.trim())) throw new LoginFailure('the credentials have characters that cannot be sent')
  }
}

/** Has the source asked by us, so that its failures are known as such. */
function guard(config: KubeConfig, { name, ask, fault }: Source): void {
  const user = config.getCurrentUser() as User
  config.addAuthenticator({
    isAuthProvider: ({ authProvider }) => authProvider?.name === GUARDED,
    applyAuthentication: async (_, options) => {
      try {
        await ask(user, options)
      } catch (error) {
        throw new LoginFailure(`${name} ${fault(error)}`)
      }
    },
  })
  const guarded: User = { ...user, exec: undefined, authProvider: { name: GUARDED } }
  config.users = config.users.map((one) => (one.name === user.name ? guarded : one))
}

/** Null: the credentials are in the kubeconfig, or in files that it names. */
function sourceFor(user: User | null): Source | null {
  const exec: unknown = user?.exec ?? user?.authProvider?.config?.exec
  if (exec) return programSource(exec as Program)
  if (user?.authProvider?.name !== 'oidc') return null
  const service = new OpenIDConnectAuth()
  return {
    name: 'the service that gives the credentials',
    ask: (asker, options) => service.applyAuthentication(asker, options),
    fault: () => 'does not answer as it should',
  }
}

interface Program {
  readonly env?: readonly { readonly name: string; readonly value?: string }[] | null
}

function programSource(program: Program): Source {
  const exec = { ...program, env: [...withoutOurs(), ...(program.env ?? [])] }
  let source = new ExecAuth()
  return {
    name: 'the program that gives the credentials',
    ask: ({ name }, options) => source.applyAuthentication({ name, exec }, options),
    fault: (error) => {
      // It keeps an answer that is no good like a good one.
      source = new ExecAuth()
      const { code } = error as { code?: unknown }
      if (code === 'ENOENT' || code === 'EACCES') return `cannot be run (${code})`
      return error instanceof SyntaxError || error instanceof TypeError ? 'does not answer as it should' : 'fails'
    },
  }
}

/** The platform's own variables, its keys among them, are nothing for the programs of others. What the kubeconfig sets itself stays. */
function withoutOurs(): { name: string; value?: string }[] {
  const names = Object.keys(process.env).filter((name) => name.startsWith('PLATFORM_'))
  // One without a value is none.
  return names.map((name) => ({ name }))
}
