/** A kubeconfig for a server, with a token, or with certificates where it speaks TLS. */
export function kubeconfigOf(
  server: string,
  { namespace, tls }: { namespace: string; tls: { ca: string; clientKey: string; clientCert: string } | undefined },
): object {
  const text = (value: string) => Buffer.from(value).toString('base64')
  const trust = tls === undefined ? { 'insecure-skip-tls-verify': true } : { 'certificate-authority-data': text(tls.ca) }
  const user =
    tls === undefined
      ? { token: 'not-a-secret' }
      : { 'client-key-data': text(tls.clientKey), 'client-certificate-data': text(tls.clientCert) }
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'double', cluster: { server, ...trust } }],
    users: [{ name: 'platform', user }],
    contexts: [{ name: 'double', context: { cluster: 'double', user: 'platform', namespace } }],
    'current-context': 'double',
  }
}
