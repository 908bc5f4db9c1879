import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'

/** What a child may know of the machine: where programs are, the language, how to reach the network. Nothing of the platform. */
const PASSED_ON = [
  'LANG',
  'LC_ALL',
  'TZ',
  'TMPDIR',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'ALL_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'all_proxy',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
]

/** npm settings that say where packages come from; the rest of npm's variables belong to whoever started the platform. */
const NPM_SOURCE = /^npm_config_(registry|@[^:]+:registry|userconfig|globalconfig|ca|cafile|strict_ssl|proxy|https_proxy|noproxy)$/i

export type Environment = Record<string, string>

/** The smallest environment that programs work in. The Node that runs the platform is found first. */
export function baseEnvironment(home: string, own: NodeJS.ProcessEnv = process.env): Environment {
  const env: Environment = { PATH: [path.dirname(process.execPath), ...programs(own['PATH'])].join(path.delimiter), HOME: home }
  for (const name of PASSED_ON) {
    const value = own[name]
    if (value !== undefined) env[name] = value
  }
  return env
}

/** The platform may itself be started by npm, which puts the platform's own tools first. They are not for builds. */
function programs(searchPath = '/usr/local/bin:/usr/bin:/bin'): string[] {
  return searchPath.split(path.delimiter).filter((folder) => folder !== '' && !/node_modules[/\\]\.bin|node-gyp-bin/.test(folder))
}

/** pip's settings that say where packages come from; the platform user's own configuration file belongs to them. */
const PIP_SOURCE =
  /^(PIP_(CONFIG_FILE|(EXTRA_)?INDEX_URL|NO_INDEX|FIND_LINKS|TRUSTED_HOST|(CLIENT_)?CERT|PROXY|(DEFAULT_)?TIMEOUT|RETRIES)|REQUESTS_CA_BUNDLE)$/

/** pip as a build needs it: the platform user's indexes, one cache for all builds, no questions, no look for a newer pip. */
export function pipEnvironment(cache: string, own: NodeJS.ProcessEnv = process.env): Environment {
  const user = [path.join(homedir(), '.config/pip/pip.conf'), path.join(homedir(), '.pip/pip.conf')].find((file) => existsSync(file))
  const env: Environment = user === undefined ? {} : { PIP_CONFIG_FILE: user }
  for (const [name, value] of Object.entries(own)) if (value !== undefined && PIP_SOURCE.test(name)) env[name] = value
  return {
    ...env,
    PIP_CACHE_DIR: cache,
    PIP_NO_INPUT: '1',
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
    PIP_PROGRESS_BAR: 'off',
    PIP_ROOT_USER_ACTION: 'ignore',
    CI: 'true',
  }
}

/** A virtual environment as if it had been activated. Nothing that is installed for the machine or its users is seen. */
export function pythonEnvironment(home: string, virtualEnvironment: string): Environment {
  const base = baseEnvironment(home)
  return {
    ...base,
    PATH: [path.join(virtualEnvironment, 'bin'), base['PATH']].join(path.delimiter),
    VIRTUAL_ENV: virtualEnvironment,
    PYTHONNOUSERSITE: '1',
    PYTHONUNBUFFERED: '1',
    PYTHONUTF8: '1',
  }
}

/** npm as a build needs it: the platform user's registries, one cache for all builds, no questions and no advertising. */
export function npmEnvironment(cache: string, own: NodeJS.ProcessEnv = process.env): Environment {
  const env: Environment = { npm_config_userconfig: path.join(homedir(), '.npmrc') }
  for (const [name, value] of Object.entries(own)) if (value !== undefined && NPM_SOURCE.test(name)) env[name] = value
  return {
    ...env,
    npm_config_cache: cache,
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
    npm_config_progress: 'false',
    npm_config_prefer_offline: 'true',
    npm_config_yes: 'true',
    CI: 'true',
  }
}
