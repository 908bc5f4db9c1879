import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Certificates = { caFile: string; key: string; certificate: string; remove: () => void }

/** An authority of our own and its certificate for `control-plane.test` and 127.0.0.1. Throws where there is no openssl. */
export function makeCertificates(): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'deploy-agent-server-ca-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  try {
    writeFileSync(join(folder, 'names'), 'subjectAltName=DNS:control-plane.test,IP:127.0.0.1\n')
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=Test CA', '-days', '2')
    openssl('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=control-plane.test')
    const signed = [
      '-CA',
      'ca.crt',
      '-CAkey',
      'ca.key',
      '-CAcreateserial',
      '-days',
      '2',
      '-extfile',
      'names',
      '-out',
      'server.crt',
    ]
    openssl('x509', '-req', '-in', 'server.csr', ...signed)
    const read = (name: string) => readFileSync(join(folder, name), 'utf8')
    return { caFile: join(folder, 'ca.crt'), key: read('server.key'), certificate: read('server.crt'), remove }
  } catch (error) {
    remove()
    throw error
  }
}
