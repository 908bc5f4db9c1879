import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { graphConfigPathSchema, isValidConfigPath } from '../../src/contract/config-path.ts'
import { isTagRef, isValidGitRef, repoRefSchema } from '../../src/contract/git-ref.ts'
import { DEPLOYMENT_NAME_MAX, deploymentNameSchema, normaliseDeploymentName } from '../../src/contract/name.ts'
import { limitSchema, offsetSchema, PAGE_OFFSET_MAX, pageSchema } from '../../src/contract/paging.ts'
import { imageUriSchema, revisionSchema } from '../../src/contract/revision.ts'
import { RESERVED_SECRET_NAMES, secretSchema, secretsSchema, SECRETS_MAX } from '../../src/contract/secret.ts'

describe('the name of a deployment', () => {
  it.each(['a', 'my-agent', '0-1', 'a'.repeat(63)])('may be %s', (name) => {
    expect(deploymentNameSchema.safeParse(name).success).toBe(true)
    expect(normaliseDeploymentName(name)).toBe(name)
  })

  it.each(['', '-a', 'a-', 'A', 'a_b', 'a.b', 'ä', 'a b', 'a\n', 'a'.repeat(64)])('may not be %j', (name) => {
    expect(deploymentNameSchema.safeParse(name).success).toBe(false)
  })

  it.each([
    ['My Agent', 'my-agent'],
    ['feature/Über_cool!', 'feature-ber-cool'],
    ['--a--b--', 'a-b'],
    ['...', ''],
    [`${'a'.repeat(62)}-bcd`, 'a'.repeat(62)],
    [`-${'a'.repeat(70)}`, 'a'.repeat(63)],
    [`--_${'a'.repeat(62)}--b`, 'a'.repeat(62)],
  ])('is made of %j: %j', (name, expected) => {
    expect(normaliseDeploymentName(name)).toBe(expected)
  })

  it('is valid, or empty, once normalised, and stays so', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom('a', 'B', '-', '_', '9'), maxLength: 140 })),
        (name) => {
          const normal = normaliseDeploymentName(name)
          expect(normal === '' || deploymentNameSchema.safeParse(normal).success).toBe(true)
          expect(normaliseDeploymentName(normal)).toBe(normal)
          expect(normal.length).toBeLessThanOrEqual(DEPLOYMENT_NAME_MAX)
        },
      ),
    )
  })
})

describe('repo_ref', () => {
  it.each(['x'.repeat(255), 'main', 'feature/x', 'release-1.2', 'refs/tags/v1.2.3', 'ünïcode', 'a@b', 'refs', 'tags/v1'])(
    'may be %s',
    (ref) => {
      expect(repoRefSchema.safeParse(ref).success).toBe(true)
    },
  )

  it.each([
    '',
    '-x',
    '--upload-pack=evil',
    'a..b',
    'a b',
    'a~1',
    'a^',
    'a:b',
    'a?',
    'a*',
    'a[b',
    'a\\b',
    'a//b',
    '/a',
    'a/',
    'a.',
    '@',
    'a@{1}',
    '.a',
    'a/.b',
    'a.lock',
    'a.lock/b',
    'a\u0000',
    'a\n',
    'a\u007f',
    'refs/heads/main',
    'refs/pull/1/head',
    'refs/tags/',
    'x'.repeat(256),
  ])('may not be %j', (ref) => {
    expect(repoRefSchema.safeParse(ref).success).toBe(false)
  })

  it('is told what it should be', () => {
    expect(repoRefSchema.safeParse('refs/heads/main').error?.issues[0]?.message).toBe(
      "repo_ref should be a bare branch name, or a full tag ref that starts with 'refs/tags/'",
    )
  })

  it('is a tag by its full path only', () => {
    expect([isTagRef('refs/tags/v1'), isTagRef('v1'), isTagRef('refs/tagsx')]).toEqual([true, false, false])
  })

  it('never holds what git or a command line could read as something else', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '.', '/', '-', '@', '{', ' ', '~', 'lock', '\n', '\\') }), (ref) => {
        if (!isValidGitRef(ref)) return
        expect(ref).not.toMatch(/^-|\.\.|[\s~^:?*[\\]|@\{|\.lock(\/|$)|^\/|\/$|\/\//)
      }),
    )
  })
})

describe('graph_config_path', () => {
  it.each([
    `${'x'.repeat(1019)}.json`,
    'langgraph.json',
    './langgraph.json',
    'apps/my agent/langgraph.json',
    'a..b.json',
    '.hidden/x.json',
  ])('may be %s', (path) => {
    expect(graphConfigPathSchema.safeParse(path).success).toBe(true)
  })

  it.each([
    '',
    '/x.json',
    '/etc/x.json',
    '../x.json',
    'a/../x.json',
    'a/./x.json',
    'a//x.json',
    'a\\x.json',
    '-x.json',
    'x.yaml',
    'x.json/',
    'x\u0000.json',
    `${'x'.repeat(1020)}.json`,
  ])('may not be %j', (path) => {
    expect(isValidConfigPath(path)).toBe(false)
  })
})

describe('image_uri', () => {
  it.each(['agent', 'registry.example.com:5000/team/agent:1.2.3', 'a@sha256:abc'])('may be %s', (uri) => {
    expect(imageUriSchema.safeParse(uri).success).toBe(true)
  })

  it.each(['', '-v', 'a b', 'a\n', ' a', 'x'.repeat(1025)])('may not be %j', (uri) => {
    expect(imageUriSchema.safeParse(uri).success).toBe(false)
  })
})

describe('paging', () => {
  it.each([
    ['1', 1],
    ['100', 100],
    ['+5', 5],
    [undefined, 20],
  ])('limit %s is %s', (text, limit) => {
    expect(limitSchema.parse(text)).toBe(limit)
  })

  it.each(['0', '101', '-1', '', ' ', '1.5', 'ten', '1e1', '0x10', '99999999999999999999'])('limit %j is refused', (text) => {
    expect(limitSchema.safeParse(text).success).toBe(false)
  })

  it('that is no integer is a fault of its own', () => {
    for (const schema of [limitSchema, offsetSchema]) {
      const message = 'Input should be a valid integer, unable to parse string as an integer'
      expect(schema.safeParse('ten').error?.issues).toMatchObject([{ code: 'custom', message, params: { type: 'int_parsing' } }])
    }
    expect(limitSchema.safeParse('101').error?.issues).toMatchObject([{ code: 'too_big', maximum: 100 }])
    expect(offsetSchema.safeParse('-99999999999999999999').error?.issues).toMatchObject([{ code: 'too_small', minimum: 0 }])
  })

  it.each([
    ['0', 0],
    [`${PAGE_OFFSET_MAX}`, PAGE_OFFSET_MAX],
    [undefined, 0],
  ])('offset %s is %s', (text, offset) => {
    expect(offsetSchema.parse(text)).toBe(offset)
  })

  it.each(['-1', `${PAGE_OFFSET_MAX + 1}`, '', '1.5', 'x'])('offset %j is refused', (text) => {
    expect(offsetSchema.safeParse(text).success).toBe(false)
  })

  it('a page has its resources and the next offset', () => {
    const schema = pageSchema(revisionSchema)
    expect(schema.safeParse({ resources: [], offset: 0 }).success).toBe(true)
    for (const page of [
      { resources: [] },
      { offset: 0 },
      { resources: [], offset: -1 },
      { resources: [], offset: 0.5 },
      { resources: [{}], offset: 1 },
    ]) {
      expect(schema.safeParse(page).success).toBe(false)
    }
  })
})

describe('secrets', () => {
  it.each(['A', '_x', 'OPENAI_API_KEY', 'a1'])('may be named %s', (name) => {
    expect(secretSchema.safeParse({ name, value: '' }).success).toBe(true)
  })

  it.each(['', '1A', 'A-B', 'A B', 'A=B', 'Ä', 'A\n', 'x'.repeat(256), ...RESERVED_SECRET_NAMES])(
    'may not be named %j',
    (name) => {
      expect(secretSchema.safeParse({ name, value: 'v' }).success).toBe(false)
    },
  )

  it('have a value of bounded length, and nothing else', () => {
    expect(secretSchema.safeParse({ name: 'A', value: 'x'.repeat(65_536) }).success).toBe(true)
    expect(secretSchema.safeParse({ name: 'A', value: 'x'.repeat(65_537) }).success).toBe(false)
    expect(secretSchema.safeParse({ name: 'A' }).success).toBe(false)
    expect(secretSchema.safeParse({ name: 'A', value: 'v', more: 1 }).success).toBe(false)
  })

  it('have different names, and there are not too many', () => {
    const secrets = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `A${index}`, value: 'v' }))
    expect(secretsSchema.safeParse(secrets(SECRETS_MAX)).success).toBe(true)
    expect(secretsSchema.safeParse(secrets(SECRETS_MAX + 1)).success).toBe(false)
    expect(secretsSchema.safeParse([...secrets(2), ...secrets(1)]).success).toBe(false)
  })
})
