/** An answer of an agent that tells its version. */
type Answer = { status: number; text: string }

export interface Load {
  /** What went wrong, one text a request. */
  readonly failures: readonly string[]
  /** The version that each answer told. */
  readonly versions: readonly string[]
  end(): Promise<void>
}

/** Asks until it is told to stop, four at a time. Every answer has to be a 200 that names a version. */
export function startLoad(ask: () => Promise<Answer>): Load {
  const failures: string[] = []
  const versions: string[] = []
  let going = true
  const one = async () => {
    while (going) {
      const { status, text } = await ask().catch((error: Error) => ({ status: 0, text: String(error) }))
      const version = /version (\d+)/.exec(text)?.[1]
      if (status === 200 && version !== undefined) versions.push(version)
      else failures.push(`${status}: ${text.slice(0, 300)}`)
    }
  }
  const all = [one(), one(), one(), one()]
  return {
    failures,
    versions,
    end: async () => {
      going = false
      await Promise.all(all)
    },
  }
}
