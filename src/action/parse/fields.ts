import { z } from 'zod'
import { CONFIG_PATH_RULE, graphConfigPathSchema } from '../../contract/config-path.ts'
import { GIT_REF_RULE, isTagRef, isValidGitRef, repoRefSchema, TAG_REF_PREFIX } from '../../contract/git-ref.ts'
import { DEPLOYMENT_NAME_RULE, deploymentNameSchema, normaliseDeploymentName } from '../../contract/name.ts'
import { imageUriSchema } from '../../contract/revision.ts'
import { MOMENT_RULE, parseMoment } from '../export/moment.ts'
import {
  BUCKET_REGION_RULE,
  BUCKET_RULE,
  CREDENTIAL_RULE,
  ENDPOINT_RULE,
  FIELDS_RULE,
  FILTER_RULE,
  INTERVAL_RULE,
  parseApiUrl,
  parseBucket,
  parseBucketRegion,
  parseCredential,
  parseEndpoint,
  parseExportFields,
  parseExportFilter,
  parseInterval,
  parsePrefix,
  PREFIX_RULE,
} from '../export/parse.ts'
import { INPUTS, type InputName } from '../registry.ts'
import { ADDRESS_RULE, parseAddress, showAddress } from './address.ts'
import { AGE_RULE, DURATION_RULE, parseAge, parseDuration } from './duration.ts'
import { type Parsed, parseBoolean, parseEnum, parseWith } from './parsed.ts'
import { parseRepoUrl, REPO_URL_RULE } from './repo-url.ts'
import { parseSecretLines, SECRET_LINES_RULE } from './secret-lines.ts'
import { ASSISTANT_RULE, EXPECT_RULE, parseAssistant, parseExpect, parseSmokeInput, SMOKE_INPUT_RULE } from './smoke-test.ts'
import { parseSourceConfig, SOURCE_CONFIG_RULE } from './source-config.ts'

/** Longest name of an environment that GitHub takes. */
const ENVIRONMENT_MAX = 255
const ENVIRONMENT_RULE = `a name of one line, ${ENVIRONMENT_MAX} characters at most`

/** How the text of each input is read, and what is accepted, in words. An empty text never gets here: it means unset. */
export const FIELDS = {
  'api-key': { accepted: 'a key without white space, on one line', parse: parseApiKey },
  'workspace-id': uuid(),
  region: words(INPUTS.region),
  'control-plane-url': { accepted: ADDRESS_RULE, parse: parseAddress },
  'api-url': { accepted: ADDRESS_RULE, parse: parseApiUrl },
  dialect: words(INPUTS.dialect),
  mode: words(INPUTS.mode),
  'deployment-name': { accepted: DEPLOYMENT_NAME_RULE, parse: parseName },
  'deployment-id': uuid(),
  'repo-url': { accepted: REPO_URL_RULE, parse: parseRepoUrl },
  'repo-ref': { accepted: GIT_REF_RULE, parse: parseRepoRef },
  tag: { accepted: 'the name of a tag, such as v1.2.3 or refs/tags/v1.2.3', parse: parseTag },
  'config-path': { accepted: CONFIG_PATH_RULE, parse: parseConfigPath },
  'image-uri': { accepted: 'an image reference such as registry.example.com/team/agent:1.2.3', parse: parseImageUri },
  'integration-id': uuid(),
  'deployment-type': { accepted: 'one word, 64 characters at most, such as dev or prod', parse: parseDeploymentType },
  'build-on-push': boolean(),
  'source-config': { accepted: SOURCE_CONFIG_RULE, parse: parseSourceConfig },
  secrets: { accepted: SECRET_LINES_RULE, parse: parseSecrets },
  'skip-unchanged': boolean(),
  'dry-run': boolean(),
  wait: boolean(),
  timeout: { accepted: DURATION_RULE, parse: parseDuration },
  'on-timeout': words(INPUTS['on-timeout']),
  'on-cancel': words(INPUTS['on-cancel']),
  'smoke-test-input': { accepted: SMOKE_INPUT_RULE, parse: parseSmokeInput },
  'smoke-test-assistant': { accepted: ASSISTANT_RULE, parse: parseAssistant },
  'smoke-test-stream-mode': words(INPUTS['smoke-test-stream-mode']),
  'smoke-test-expect': { accepted: EXPECT_RULE, parse: parseExpect },
  'smoke-test-timeout': { accepted: DURATION_RULE, parse: parseDuration },
  'rollback-on-failure': boolean(),
  'promote-from': { accepted: 'the name or the id of a deployment', parse: parseNameOrId },
  'preview-ttl': { accepted: AGE_RULE, parse: parseAge },
  'export-project-id': uuid(),
  'export-destination-id': uuid(),
  'export-bucket': { accepted: BUCKET_RULE, parse: parseBucket },
  'export-prefix': { accepted: PREFIX_RULE, parse: parsePrefix },
  'export-bucket-region': { accepted: BUCKET_REGION_RULE, parse: parseBucketRegion },
  'export-endpoint-url': { accepted: ENDPOINT_RULE, parse: parseEndpoint },
  'export-access-key-id': { accepted: CREDENTIAL_RULE, parse: parseCredential('access_key_id') },
  'export-secret-access-key': { accepted: CREDENTIAL_RULE, parse: parseCredential('secret_access_key') },
  'export-session-token': { accepted: CREDENTIAL_RULE, parse: parseCredential('session_token') },
  'export-start': { accepted: MOMENT_RULE, parse: parseMoment },
  'export-end': { accepted: MOMENT_RULE, parse: parseMoment },
  'export-interval-hours': { accepted: INTERVAL_RULE, parse: parseInterval },
  'export-filter': { accepted: FILTER_RULE, parse: parseExportFilter },
  'export-fields': { accepted: FIELDS_RULE, parse: parseExportFields },
  'export-format-version': words(INPUTS['export-format-version']),
  'export-wait': boolean(),
  'export-timeout': { accepted: DURATION_RULE, parse: parseDuration },
  environment: { accepted: ENVIRONMENT_RULE, parse: parseEnvironment },
  comment: boolean(),
  summary: boolean(),
  'github-token': { accepted: 'a token without white space, on one line', parse: parseApiKey },
} as const satisfies Record<InputName, { accepted: string; parse: (text: string) => Parsed<unknown> }>

type Read<Name extends InputName> = Extract<ReturnType<(typeof FIELDS)[Name]['parse']>, { value: unknown }>['value']

/** The inputs that were given and understood. */
export type Fields = { [Name in InputName]?: Read<Name> }

function boolean() {
  return { accepted: 'true or false', parse: parseBoolean }
}

function uuid() {
  return {
    accepted: 'a UUID such as 1b4e28ba-2fa1-4d2b-883f-0016d3cca427',
    parse: (text: string): Parsed<string> =>
      z.uuid().safeParse(text).success ? { value: text.toLowerCase() } : { problem: 'is not a UUID' },
  }
}

function words<const T extends string>({ values }: { values: readonly T[] }) {
  return { accepted: values.join(', '), parse: (text: string): Parsed<T> => parseEnum(values, text) }
}

function parseApiKey(text: string): Parsed<string> {
  return /^[\x21-\x7e]{1,4096}$/.test(text) ? { value: text } : { problem: 'contains characters that no header can carry' }
}

function parseEnvironment(text: string): Parsed<string> {
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) return { problem: 'has more than one line, or control characters' }
  return text.length <= ENVIRONMENT_MAX ? { value: text } : { problem: `is ${text.length} characters long` }
}

function parseName(text: string): Parsed<string> {
  if (deploymentNameSchema.safeParse(text).success) return { value: text }
  const suggestion = normaliseDeploymentName(text)
  return { problem: 'is not a name of a deployment', ...(suggestion === '' ? {} : { fix: `write ${suggestion}` }) }
}

function parseNameOrId(text: string): Parsed<{ name: string } | { id: string }> {
  if (z.uuid().safeParse(text).success) return { value: { id: text.toLowerCase() } }
  const name = parseName(text)
  return 'value' in name ? { value: { name: name.value } } : name
}

function parseRepoRef(text: string): Parsed<string> {
  if (repoRefSchema.safeParse(text).success) return { value: text }
  const branch = /^refs\/heads\/(.+)$/.exec(text)?.[1]
  const fix = branch === undefined ? {} : { fix: `write ${branch}` }
  return { problem: 'is not a branch or a tag', ...fix }
}

/** A bare tag name becomes the full ref path (specification 2.2). */
function parseTag(text: string): Parsed<string> {
  const ref = isTagRef(text) ? text : TAG_REF_PREFIX + text
  if (text.startsWith('refs/') && !isTagRef(text))
    return { problem: 'is a ref, but not of a tag', fix: 'use repo-ref for a branch' }
  return isValidGitRef(text) && isValidGitRef(ref) ? { value: ref } : { problem: 'is not the name of a tag' }
}

function parseConfigPath(text: string): Parsed<string> {
  return graphConfigPathSchema.safeParse(text).success ? { value: text } : { problem: 'is not such a path' }
}

function parseImageUri(text: string): Parsed<string> {
  if (/^https?:\/\//i.test(text)) {
    const bare = text.replace(/^https?:\/\//i, '')
    // What carries credentials is not shown once more.
    return { problem: 'begins with a scheme', ...(showAddress(text) === text && { fix: `write ${bare}` }) }
  }
  return parseWith(imageUriSchema, text)
}

function parseDeploymentType(text: string): Parsed<string> {
  return /^[A-Za-z0-9_-]{1,64}$/.test(text) ? { value: text } : { problem: 'is not one word' }
}

function parseSecrets(text: string) {
  const { secrets, problems } = parseSecretLines(text)
  return problems.length === 0 ? { value: secrets } : { problem: `cannot be used: ${problems.join('; ')}` }
}
