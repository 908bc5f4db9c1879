import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type Docker from 'dockerode'
import { TEST_REPOSITORY } from './docker-engine.ts'
import { REGISTRY_LOGIN, type TestRegistry } from './docker-registry.ts'

const AGENT = fileURLToPath(new URL('agent-image/agent.mjs', import.meta.url))
/** A kind of machine that this one is not. */
const FOREIGN = process.arch === 'arm64' ? 'amd64' : 'arm64'
const BASE = `localhost/${TEST_REPOSITORY}/base:latest`

/** What an image adds to the small agent server: variables, or another command. */
export type ImageOptions = { env?: Readonly<Record<string, string>>; command?: readonly string[] }

/** Makes the image that the others are made from: this machine's Node, its libraries, and a small agent server. No registry is needed. */
export async function makeBaseImage(docker: Docker): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'agent-image-'))
  try {
    const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' }).match(/\/\S+/g) ?? []
    for (const file of libraries) copy(file, join(root, file))
    copy(process.execPath, join(root, 'usr/bin/node'))
    copy(AGENT, join(root, 'agent.mjs'))
    for (const folder of ['tmp', 'etc']) mkdirSync(join(root, folder), { recursive: true })
    await importImage(docker, { root, name: BASE })
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  copyFileSync(from, to)
}

async function importImage(docker: Docker, { root, name }: { root: string; name: string }): Promise<void> {
  const tar = spawn('tar', ['-C', root, '-c', '.'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const [repo, tag] = name.split(/:(?=[^:/]+$)/)
  const stream = await docker.importImage(tar.stdout, { repo, tag })
  await finished(stream)
}

async function finished(stream: NodeJS.ReadableStream): Promise<void> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  if (text.includes('"error"')) throw new Error(text.slice(-1000))
}

/** Makes an agent image on the engine. @returns its name. */
export async function makeImage(docker: Docker, name: string, { env = {}, command }: ImageOptions = {}): Promise<string> {
  const [repo, tag] = name.split(/:(?=[^:/]+$)/)
  // What the container is made with, the image has.
  const container = await docker.createContainer({
    Image: BASE,
    Cmd: [...(command ?? ['/usr/bin/node', '/agent.mjs'])],
    Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
  })
  try {
    await container.commit({ repo, tag })
  } finally {
    await container.remove({ force: true })
  }
  return name
}

/** Makes an image for another kind of machine: its program is for a processor that this one is not. */
export async function makeForeignImage(docker: Docker, name: string): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), 'foreign-image-'))
  // The first bytes of an executable for arm64, or for amd64 where this machine is an arm64.
  const program = Buffer.alloc(256)
  program.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1])
  program.writeUInt16LE(2, 16)
  program.writeUInt16LE(FOREIGN === 'arm64' ? 0xb7 : 0x3e, 18)
  program.writeUInt32LE(1, 20)
  try {
    writeFileSync(join(root, 'agent'), program, { mode: 0o755 })
    const layer = execFileSync('tar', ['-C', root, '-c', 'agent'])
    const config = {
      architecture: FOREIGN,
      os: 'linux',
      config: { Cmd: ['/agent'] },
      rootfs: { type: 'layers', diff_ids: [`sha256:${createHash('sha256').update(layer).digest('hex')}`] },
    }
    const files = {
      'layer.tar': layer,
      'config.json': JSON.stringify(config),
      'manifest.json': JSON.stringify([{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }]),
    }
    for (const [file, content] of Object.entries(files)) writeFileSync(join(root, file), content)
    const archive = spawn('tar', ['-C', root, '-c', ...Object.keys(files)], { stdio: ['ignore', 'pipe', 'ignore'] })
    await finished(await docker.loadImage(archive.stdout))
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
  return name
}

/** Pushes an image to the registry in its name and takes it off the engine. @returns its digest. */
export async function pushImage(docker: Docker, name: string, { login = false } = {}): Promise<string> {
  const authconfig = login ? REGISTRY_LOGIN : { username: '', password: '' }
  await finished(await docker.getImage(name).push({ authconfig }))
  const { RepoDigests } = await docker.getImage(name).inspect()
  const repository = name.slice(0, name.lastIndexOf(':'))
  const digest = RepoDigests.find((one) => one.startsWith(`${repository}@`))?.split('@')[1]
  await docker.getImage(name).remove({ force: true })
  if (digest === undefined) throw new Error(`${name} has no digest after the push`)
  return digest
}

/** Puts a list of images into the registry, which has one for a machine that this is not, and nothing else. */
export async function pushForeignList(
  registry: TestRegistry,
  { path, tag, digest }: { path: string; tag: string; digest: string },
): Promise<void> {
  const manifest = await registry.ask(`/v2/${path}/manifests/${digest}`, {
    headers: { Accept: 'application/vnd.docker.distribution.manifest.v2+json' },
  })
  const text = await manifest.text()
  const mediaType = 'application/vnd.docker.distribution.manifest.list.v2+json'
  const one = {
    mediaType: manifest.headers.get('content-type'),
    size: Buffer.byteLength(text),
    digest,
    platform: { os: 'linux', architecture: FOREIGN },
  }
  const response = await registry.ask(`/v2/${path}/manifests/${tag}`, {
    method: 'PUT',
    headers: { 'Content-Type': mediaType },
    body: JSON.stringify({ schemaVersion: 2, mediaType, manifests: [one] }),
  })
  if (!response.ok) throw new Error(`the list was refused: ${response.status} ${await response.text()}`)
}
