/**
 * Idle memory and time to ready: `npm run bench:idle -- [folder ...]`. Each folder is a built tree (`npm run build`); without any, this
 * one. Trees take turns, with five starts each: the service as `npm start` runs it, on a SQLite file, without and with the OpenID
 * Connect issuer, and Node.js with nothing to do.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../test/support/redis-server.ts'
import { root } from './servers.ts'
import { median } from './turns.ts'

const starts = 5
/** Time in ms after the first answer: what the start left over is collected by then. */
const idleMs = 5_000

interface Start {
  readonly readyMs: number
  readonly residentMiB: number
}

/** Starts a program, waits until it answers, if it listens, and then for a while. */
async function start(args: readonly string[], env: Record<string, string>, port: number | undefined): Promise<Start> {
  const beganAt = performance.now()
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: 'ignore' })
  try {
    while (port !== undefined && !(await isReady(port))) {
      if (child.exitCode !== null) throw new Error(`${args.join(' ')} ended with ${child.exitCode}`)
      await sleep(5)
    }
    const readyMs = performance.now() - beganAt
    await sleep(idleMs)
    const [, kib = ''] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? []
    return { readyMs, residentMiB: Number(kib) / 1024 }
  } finally {
    child.kill('SIGKILL')
    if (child.exitCode === null) await once(child, 'exit')
  }
}

async function isReady(port: number): Promise<boolean> {
  return await fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )
}

const folder = mkdtempSync(join(tmpdir(), 'countersign-idle-'))
const clients = join(folder, 'clients.json')
const metadata = {
  client_id: 'shop',
  client_secret: 's'.repeat(40),
  redirect_uris: ['https://shop.example/callback'],
}
writeFileSync(clients, JSON.stringify({ clients: [{ metadata }] }))

/** One start of the service of a tree. */
async function startService(tree: string, name: string, env: Record<string, string>): Promise<Start> {
  const port = await freePort()
  const own = { COUNTERSIGN_STORE: `sqlite:${join(folder, name)}.sqlite`, PORT: String(port), ...env }
  return await start([join(tree, 'dist/src/main.js')], own, port)
}

const trees = process.argv.length > 2 ? process.argv.slice(2).map((path) => resolve(path)) : [root]
const rows = new Map<string, Start[]>()
const note = (name: string, one: Start): void => void rows.set(name, [...(rows.get(name) ?? []), one])
try {
  for (let turn = 0; turn < starts; turn++) {
    note('node alone', await start(['-e', 'setInterval(() => {}, 1000)'], {}, undefined))
    for (const [index, tree] of trees.entries()) {
      note(`${tree}`, await startService(tree, `${index}`, {}))
      note(`${tree}, issuer`, await startService(tree, `${index}-issuer`, { COUNTERSIGN_OIDC_CLIENTS: clients }))
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
for (const [name, all] of rows) {
  const mib = median(all.map(({ residentMiB }) => residentMiB)).toFixed(0)
  const ms = name === 'node alone' ? '' : `, ready after ${median(all.map(({ readyMs }) => readyMs)).toFixed(0)} ms`
  console.log(`${name}: ${mib} MiB${ms}`)
}
