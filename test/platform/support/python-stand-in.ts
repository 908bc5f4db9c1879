import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const MAKE_WHEELS = fileURLToPath(new URL('./python-stand-in/make_wheels.py', import.meta.url))

/** Whether this machine can build Python agents at all. */
export function hasPython(): boolean {
  const question = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'
  return spawnSync('python3', ['-c', question], { stdio: 'ignore' }).status === 0
}

/** Fills a folder for pip's `--find-links`: a stand-in for the agent server, and one small package. */
export function makeWheels(folder: string): void {
  execFileSync('python3', [MAKE_WHEELS, folder], { stdio: 'inherit' })
}
