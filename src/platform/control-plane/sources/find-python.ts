import path from 'node:path'
import { z } from 'zod'
import { baseEnvironment, type Environment } from '../runtimes/child-environment.ts'
import { runStep } from './run-step.ts'
import { type BuildEffects, BuildFailure } from './source.ts'

/** The agent server runs on this one and newer ones. */
const OLDEST_MINOR = 11
/** Asked for by name when `python3` is another one; newest first. */
const NEWEST_MINOR = 14

export interface Python {
  readonly executable: string
  /** `3.12.4` */
  readonly version: string
}

export interface PythonWish {
  readonly configPath: string
  /** `python_version` of the configuration file. */
  readonly wanted: string | undefined
  /** Any folder; the programs are asked from there. */
  readonly directory: string
}

/**
 * The Python of this machine that the configuration is built with.
 * @throws {BuildFailure} when there is none that is new enough, or none of the wanted version, or it cannot make virtual environments.
 */
export async function findPython({ configPath, wanted, directory }: PythonWish, effects: BuildEffects): Promise<Python> {
  const minor = wanted === undefined ? undefined : wantedMinor(configPath, wanted)
  const env = baseEnvironment(directory)
  const names = minor === undefined ? ['python3', ...minors().map((each) => `python3.${each}`)] : [`python3.${minor}`, 'python3']
  const seen: Probe[] = []
  for (const name of names) {
    const probe = await ask(name, { directory, env }, effects)
    if (probe === null) continue
    seen.push(probe)
    if (!(minor === undefined ? probe.minor >= OLDEST_MINOR : probe.minor === minor)) continue
    if (probe.missing.length === 0) {
      effects.log.write('INFO', `Python ${probe.version}${wanted === undefined ? '' : ` (python_version: ${wanted})`}`)
      return probe
    }
  }
  throw new BuildFailure(refusal({ configPath, wanted, minor, seen }))
}

function wantedMinor(configPath: string, wanted: string): number {
  const minor = Number(/^3\.(\d+)$/.exec(wanted.trim())?.[1] ?? Number.NaN)
  if (minor >= OLDEST_MINOR) return minor
  throw new BuildFailure(
    `${configPath}: $.python_version is '${wanted}', and should be '3.${OLDEST_MINOR}' or newer, without a patch version.`,
  )
}

const minors = () => Array.from({ length: NEWEST_MINOR - OLDEST_MINOR + 1 }, (_, index) => NEWEST_MINOR - index)

const probeSchema = z.object({
  executable: z.string(),
  version: z.string(),
  minor: z.int(),
  /** Modules of the standard library that some systems pack apart. */
  missing: z.array(z.string()),
})
type Probe = z.infer<typeof probeSchema>

const QUESTION = `
import importlib.util, json, platform, sys
missing = [name for name in ('venv', 'ensurepip') if importlib.util.find_spec(name) is None]
print(json.dumps({'executable': sys.executable, 'version': platform.python_version(), 'minor': sys.version_info[1], 'missing': missing}))
`

interface Place {
  readonly directory: string
  readonly env: Environment
}

/** What a program tells about itself; null when there is none of this name. */
async function ask(name: string, { directory, env }: Place, effects: BuildEffects): Promise<Probe | null> {
  const step = { command: name, args: ['-I', '-c', QUESTION], cwd: directory, env, level: () => null }
  const { ok, stdout } = await runStep(step, effects)
  if (!ok) return null
  try {
    const probe = probeSchema.parse(JSON.parse(stdout))
    return path.isAbsolute(probe.executable) ? probe : null
  } catch {
    return null
  }
}

interface Search {
  readonly configPath: string
  readonly wanted: string | undefined
  readonly minor: number | undefined
  readonly seen: readonly Probe[]
}

function refusal({ configPath, wanted, minor, seen }: Search): string {
  const usable = seen.find((probe) => (minor === undefined ? probe.minor >= OLDEST_MINOR : probe.minor === minor))
  if (usable !== undefined) {
    const modules = usable.missing.join(' and ')
    const lack = `the Python ${usable.version} of this machine lacks ${modules}`
    return `${configPath} has Python graphs, and ${lack}: install its venv package (python3-venv).`
  }
  const has = seen.length === 0 ? 'has no Python' : `has Python ${[...new Set(seen.map((probe) => probe.version))].join(', ')} only`
  const needed = minor === undefined ? `Python 3.${OLDEST_MINOR} or newer with venv` : `the Python ${wanted} of $.python_version`
  return `${configPath} has Python graphs, which need ${needed}, and this machine ${has}. Install it, or deploy them as a container image.`
}
