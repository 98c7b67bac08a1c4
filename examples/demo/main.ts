/** `npm run demo`: every step of a sign-in and of a cross-device order, with a real server and real wallets. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { createCountersign } from '../../src/index.ts'
import { signInDirectly } from './direct.ts'
import { say, step } from './print.ts'
import { makeWallet } from './wallet.ts'

const options = { store: 'sqlite::memory:', port: 0, appName: 'Tulip Shop' } as const
const service = await createCountersign(options)
const withReturnCodes = await createCountersign({ ...options, confirmationCode: 'return' })
try {
  await service.listen()
  await withReturnCodes.listen()
  const url = service.publicUrl
  step('Countersign signs people in with a wallet signature')
  say(`a server on an embedded store listens at ${url}`)
  const wallet = makeWallet()
  say(`a fresh Nimiq wallet has the address ${wallet.address}`)

  await signInDirectly(url, wallet)

  step('The wallet is on the phone: a desktop starts a login order, the phone approves it')
  await runOrder(url, 'login')
  step('The same for a signature: the desktop gets a proof artifact in place of a session')
  await runOrder(url, 'sign')

  step('A login order on a server with confirmationCode=return: the code goes from the phone to the desktop')
  await runOrder(withReturnCodes.publicUrl, 'login')

  step('Done. npm start runs the server; docs/protocol.md has the calls.')
} finally {
  await service.close(1000)
  await withReturnCodes.close(1000)
}

/**
 * Desktop and phone as two processes. What a QR code and the user carry from one to the other goes through this one.
 */
async function runOrder(url: string, kind: 'login' | 'sign'): Promise<void> {
  const desktop = start('desktop', [url, kind])
  const [{ claimUrl }] = (await once(desktop, 'message')) as [{ claimUrl: string }]
  const phone = start('phone', [url, claimUrl])
  phone.on('message', (shown: { returnCode: string }) => desktop.send(shown))
  await Promise.all([finished(desktop), finished(phone)])
}

function start(role: 'desktop' | 'phone', args: string[]): ChildProcess {
  const child = fork(new URL(`./${role}.ts`, import.meta.url), args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  if (child.stdout !== null) {
    createInterface(child.stdout).on('line', (line) => process.stdout.write(`${role.padStart(9)} │${line}\n`))
  }
  return child
}

async function finished(child: ChildProcess): Promise<void> {
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`a demo process ended with exit status ${code}`)
}
