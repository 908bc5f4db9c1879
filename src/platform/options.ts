import { parseArgs } from 'node:util'
import { z } from 'zod'
import { dialectSchema } from '../contract/dialects.ts'

export const ROLES = ['all', 'api', 'queue'] as const
export const OFFERINGS = ['cloud', 'self_hosted', 'any'] as const
export const PLANS = ['developer', 'plus', 'enterprise'] as const

/** An option of the command line: what the help and the README say of it, and what it accepts. */
interface OptionDefinition {
  readonly meaning: string
  readonly schema: z.ZodType
  /** A flag takes no value on the command line. */
  readonly flag?: true
}

const flag = z.enum(['true', 'false']).default('false').transform((value) => value === 'true')

/** Every option of the platform. The environment variable of `--data-dir` is `PLATFORM_DATA_DIR`. */
export const OPTIONS = {
  host: { meaning: 'listen address', schema: z.string().min(1).default('127.0.0.1') },
  port: {
    meaning: 'listen port; 0 picks a free one',
    schema: z.string().regex(/^\d{1,5}$/, 'a port number').transform(Number).pipe(z.int().max(65_535)).default(8787),
  },
  'data-dir': { meaning: 'everything that it keeps on disk', schema: z.string().min(1).default('.platform') },
  'database-url': {
    meaning: '`postgres://…`; absent: the embedded database in the data directory',
    schema: z.string().regex(/^postgres(ql)?:\/\//, 'a postgres:// address').optional(),
  },
  role: { meaning: '`all`, `api` (backend) or `queue` (builds, exports)', schema: z.enum(ROLES).default('all') },
  'api-key': {
    meaning: 'key of the first workspace; absent: generated and printed once',
    schema: z.string().regex(/^[\x21-\x7e]{16,512}$/, '16 to 512 printable characters without spaces').optional(),
  },
  'workspace-id': { meaning: 'id of the first workspace; absent: generated', schema: z.uuid().optional() },
  offering: {
    meaning: '`cloud` (only `git_host`), `self_hosted` (only `external_docker`), `any`',
    schema: z.enum(OFFERINGS).default('any'),
  },
  plan: { meaning: 'plan tier of the first workspace: `developer`, `plus`, `enterprise`', schema: z.enum(PLANS).default('enterprise') },
  region: { meaning: '`us` or `eu`: which column of the rate-limit table', schema: z.enum(['us', 'eu']).default('us') },
  'rate-limits': { meaning: '`on` or `off`', schema: z.enum(['on', 'off']).default('on') },
  dialect: { meaning: '`spec` or `vendor`: the names in its answers', schema: dialectSchema.default('spec') },
  'time-scale': {
    meaning: "divides the service's own waits, for tests",
    schema: z.string().regex(/^\d+(\.\d+)?$/, 'a number').transform(Number).pipe(z.number().min(1).max(100_000)).default(1),
  },
  json: { meaning: 'when ready, one JSON line on standard output', schema: flag, flag: true },
} as const satisfies Record<string, OptionDefinition>

export type OptionName = keyof typeof OPTIONS
export type Options = { readonly [Name in OptionName]: z.infer<(typeof OPTIONS)[Name]['schema']> }

/** The options are wrong: one line for each fault. */
export class OptionError extends Error {}

const NAMES = Object.keys(OPTIONS) as OptionName[]

export function environmentNameOf(option: OptionName): string {
  return `PLATFORM_${option.toUpperCase().replaceAll('-', '_')}`
}

/**
 * Reads the options from the command line, then from `PLATFORM_…` variables, then from the defaults. An empty variable is unset.
 * @throws {OptionError} that lists every fault.
 */
export function parseOptions(args: readonly string[], environment: Readonly<Record<string, string | undefined>>): Options {
  const given = readArguments(args)
  const faults: string[] = []
  const options: Record<string, unknown> = {}
  for (const name of NAMES) {
    const variable = environmentNameOf(name)
    const fromEnvironment = environment[variable] === '' ? undefined : environment[variable]
    const result = OPTIONS[name].schema.safeParse(given[name] ?? fromEnvironment)
    if (result.success) options[name] = result.data
    else {
      const place = given[name] === undefined ? variable : `--${name}`
      faults.push(`${place}: ${result.error.issues.map((issue) => issue.message).join('; ')} (${OPTIONS[name].meaning})`)
    }
  }
  if (options['role'] !== 'all' && options['database-url'] === undefined && faults.length === 0) {
    faults.push('--role: the roles api and queue share one database server: set --database-url')
  }
  if (faults.length > 0) throw new OptionError(faults.join('\n'))
  return options as Options
}

function readArguments(args: readonly string[]): Partial<Record<OptionName, string>> {
  const definitions = Object.fromEntries(
    NAMES.map((name) => [name, { type: 'flag' in OPTIONS[name] ? 'boolean' : 'string' } as const]),
  )
  try {
    const { values } = parseArgs({ args: [...args], options: definitions, strict: true, allowPositionals: false })
    return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]))
  } catch (error) {
    throw new OptionError(`${(error as Error).message}\nThe options are: ${NAMES.map((name) => `--${name}`).join(', ')}`)
  }
}

/** The text of `--help`. */
export function helpText(): string {
  const lines = NAMES.map((name) => {
    const fallback = OPTIONS[name].schema.safeParse(undefined)
    const shown = fallback.success && fallback.data !== undefined ? ` (default: ${String(fallback.data)})` : ''
    return `  --${name.padEnd(14)} ${OPTIONS[name].meaning.replaceAll('`', '')}${shown}`
  })
  return ['Usage: npm run platform -- [options]', '', ...lines, '', 'Each option has an environment variable PLATFORM_… of the same name.'].join(
    '\n',
  )
}
