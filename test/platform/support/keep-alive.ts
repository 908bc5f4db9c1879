import { readFileSync } from 'node:fs'

/** Timers of the kernel's table of connections count hundredths of a second. */
const TICKS = 100
const KEEP_ALIVE = '02'

/**
 * In how many seconds the system asks whether the other end of this machine's connections is still there: of those from a local port, or to a
 * remote one (Linux). Null for one that is never asked.
 */
export function keepAliveOf({ from, to }: { from?: number; to?: number }): (number | null)[] {
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, remote, state]) => state === ESTABLISHED && (portOf(local) === from || portOf(remote) === to))
    .map(([, , , , , timer = '']) => {
      const [kind, when = '0'] = timer.split(':')
      return kind === KEEP_ALIVE ? Number.parseInt(when, 16) / TICKS : null
    })
}

const ESTABLISHED = '01'

function portOf(address = ''): number {
  return Number.parseInt(address.split(':')[1] ?? '', 16)
}
