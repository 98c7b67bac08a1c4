/** `npm run demo`: every step of a sign-in and of a cross-device order, with a real server and real wallets. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { createCountersign } from '../../src/index.ts'
import { signInDirectly } from './direct.ts'
import { title } from './print.ts'
import { makeWallet } from './wallet.ts'

const options = { store: 'sqlite::memory:', port: 0, appName: 'Tulip Shop' } as const
const service = await createCountersign(options)
const withReturnCodes = await createCountersign({ ...options, confirmationCode: 'return' })
try {
  await service.listen()
  await withReturnCodes.listen()
  const url = service.publicUrl
  title(`A wallet signs in on its own device, at ${url}`)
  await signInDirectly(url, makeWallet())
  title('A phone signs a computer in')
  await runOrder(url, 'login', 'code')
  title('A phone signs for a computer')
  await runOrder(url, 'sign')
  title('A phone signs a computer in, with a code to enter (confirmationCode=return)')
  await runOrder(withReturnCodes.publicUrl, 'login')
  title('Now with your own browser: npm start, then open http://localhost:8080')
} finally {
  await service.close(1000)
  await withReturnCodes.close(1000)
}

/**
 * Desktop and phone as two processes. What a QR code and the user carry from one to the other goes through this one.
 */
async function runOrder(url: string, kind: 'login' | 'sign', ...shows: readonly 'code'[]): Promise<void> {
  const desktop = start('desktop', [url, kind, ...shows])
  const [{ claimUrl }] = (await once(desktop, 'message')) as [{ claimUrl: string }]
  const phone = start('phone', [url, claimUrl])
  phone.on('message', (shown: { returnCode: string }) => desktop.send(shown))
  await Promise.all([finished(desktop), finished(phone)])
}

function start(role: 'desktop' | 'phone', args: string[]): ChildProcess {
  const child = fork(new URL(`./${role}.ts`, import.meta.url), args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  if (child.stdout !== null) {
    createInterface(child.stdout).on('line', (line) => process.stdout.write(`${line}\n`))
  }
  return child
}

async function finished(child: ChildProcess): Promise<void> {
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`a demo process ended with exit status ${code}`)
}
