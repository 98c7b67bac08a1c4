import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { vi } from 'vitest'
import { packPackage } from '../../../scripts/pack.ts'
import { environment, minuteMs } from '../../examples/tools.ts'
import { run } from '../../support/command.ts'
import { atFileEnd } from '../../support/file-end.ts'
import { freePort } from '../../support/redis-server.ts'

/** One of its packages asks for a tag that not every registry has. */
const manifest = { private: true, overrides: { 'node-fetch': '2.7.0' } }

/**
 * Starts a registry of npm that has the packed package, and all others of the registry that npm uses here. It lives for
 * the tests of the file, in an empty folder. Resolves with its address.
 */
export async function startRegistry(folder: string): Promise<string> {
  const options = { cwd: folder, env: environment, timeout: 10 * minuteMs }
  const npm = async (...args: readonly string[]) => (await run('npm', [...args, '--loglevel=error'], options)).stdout
  await mkdir(folder)
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  await npm('install', '--no-audit', '--no-fund', '--ignore-scripts', 'verdaccio@6.10.4')
  const port = await freePort()
  const address = `http://127.0.0.1:${port}`
  const configuration = {
    storage: join(folder, 'storage'),
    uplinks: { machine: { url: (await npm('config', 'get', 'registry')).trim() } },
    packages: { countersign: { access: '$all', publish: '$all' }, '**': { access: '$all', proxy: 'machine' } },
    log: { type: 'stdout', level: 'warn' },
  }
  // JSON is YAML.
  await writeFile(join(folder, 'config.yaml'), JSON.stringify(configuration))
  const args = [join(folder, 'node_modules/verdaccio/bin/verdaccio'), '-c', 'config.yaml', '-l', `127.0.0.1:${port}`]
  const child = spawn(process.execPath, args, { ...options, timeout: 0, stdio: 'ignore' })
  const exited = once(child, 'exit')
  atFileEnd(async () => {
    child.kill()
    await exited
  })
  const isUp = () =>
    fetch(`${address}/-/ping`).then(
      ({ ok }) => ok,
      () => false,
    )
  const ended = exited.then(() => Promise.reject(new Error('the registry ended')))
  await Promise.race([ended, vi.waitUntil(isUp, { timeout: minuteMs, interval: 200 })])
  // It takes any token, and npm sends none without a line for it.
  await writeFile(join(folder, '.npmrc'), `//127.0.0.1:${port}/:_authToken=any\n`)
  await npm('publish', '--registry', address, await packPackage())
  return address
}
