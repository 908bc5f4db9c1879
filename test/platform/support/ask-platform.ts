/** Asks a platform, and fails unless it says that all is well. */
export type AskPlatform = <T>(path: string, options?: { method?: string; body?: unknown }) => Promise<T>

/** Asks the platform at an address with a key. */
export function askPlatform(url: string, key: string): AskPlatform {
  return async <T>(path: string, { method = 'GET', body }: { method?: string; body?: unknown } = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
    return (text === '' ? undefined : JSON.parse(text)) as T
  }
}
