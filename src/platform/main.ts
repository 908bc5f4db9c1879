import { readExportSettings } from './bulk-export/settings.ts'
import { createLog } from './log.ts'
import { helpText, OptionError, type Options, parseOptions } from './options.ts'
import { type Platform, startPlatform } from './platform.ts'

/** The command line of the platform: `npm run platform -- [options]`. */
async function main(): Promise<void> {
  const args = process.argv.slice(2)
  if (args.includes('--help')) {
    process.stdout.write(`${helpText()}\n`)
    return
  }
  const options = parseOptions(args, process.env)
  const log = createLog(process.env['PLATFORM_LOG_LEVEL'] || 'info')
  const stopRequested = new Promise<NodeJS.Signals>((resolve) => {
    let asked = false
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        // Who asks twice does not want to wait.
        if (asked) process.exit(1)
        asked = true
        resolve(signal)
      })
    }
  })
  const platform = await startPlatform({ options, log, exportSettings: readExportSettings(process.env) })
  announceReady(platform, options)
  const ended = await Promise.race([stopRequested, platform.broken])
  if (ended instanceof Error) {
    log.fatal({ error: ended.message }, 'the platform cannot go on')
    process.exitCode = 1
  } else {
    log.info({ signal: ended }, 'stopping')
  }
  await platform.stop()
  // Sockets of clients that never hang up must not keep a stopped platform alive.
  process.exit()
}

function announceReady({ url, apiKey, workspaceId }: Platform, options: Options): void {
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ url, apiKey, workspaceId, pid: process.pid })}\n`)
    return
  }
  const key = apiKey ?? 'the one of the first start (only its hash is kept; give another with --api-key)'
  process.stdout.write(`Ready on ${url}\n  API key      ${key}\n  workspace    ${workspaceId}\n  data         ${options['data-dir']}\n`)
}

main().catch((error: unknown) => {
  const message = error instanceof OptionError || error instanceof Error ? error.message : String(error)
  process.stderr.write(`${message}\n`)
  process.exit(1)
})
