import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A proxy of our own that listens. */
export interface RunningProxy {
  readonly url: string
  /** What it said of failures. */
  log(): string
}

/** How to run a proxy. `folder` is empty and the proxy's own; `file` is in it and has the configuration. */
export interface ProxyProgram {
  readonly program: string
  readonly port: number
  configuration(folder: string): string
  args(folder: string, file: string): readonly string[]
  /** Further environment variables. */
  environment?(folder: string): Record<string, string>
}

/** Starts a proxy and stops it when the test ends. Resolves once it answers. */
export async function startProxy(proxy: ProxyProgram): Promise<RunningProxy> {
  const { program, port } = proxy
  const folder = await mkdtemp(join(tmpdir(), `countersign-${program}-`))
  const file = join(folder, `${program}.conf`)
  await writeFile(file, proxy.configuration(folder))
  const child = spawn(program, proxy.args(folder, file), {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...proxy.environment?.(folder) },
  })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk
  })
  const exited = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await exited
    await rm(folder, { recursive: true, force: true })
  })
  const url = `http://127.0.0.1:${port}`
  while (
    !(await fetch(url, { redirect: 'manual' }).then(
      () => true,
      () => false,
    ))
  ) {
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}: ${log}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return { url, log: () => log }
}
