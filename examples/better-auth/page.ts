import { createAuthClient } from 'better-auth/client'
import nacl from 'tweetnacl'
import {
  CountersignClientError,
  crossDeviceClient,
  type DesktopOrder,
  type Wallet,
  walletSignInClient,
} from '../../src/browser/better-auth/index.ts'
import { createCountersignClient } from '../../src/browser/client/index.ts'

/** A wallet for trying things out. A real page leaves it out, and takes Nimiq Pay's or `nimiqHub`. */
function toyWallet(): Wallet {
  const { publicKey, secretKey } = nacl.sign.keyPair()
  return {
    adapterId: 'ed25519',
    sign: (message) => ({ publicKey, signature: nacl.sign.detached(new TextEncoder().encode(message), secretKey) }),
  }
}

const options = { wallet: toyWallet(), tokenStorageKey: 'example.token' }

/** Better Auth's client with the plugins. */
const client = createAuthClient({ plugins: [walletSignInClient(options), crossDeviceClient(options)] })
/** Countersign's own client, for the service beside it. */
const countersign = createCountersignClient(options)

const element = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T

async function show(): Promise<void> {
  const { data } = await client.getSession()
  element('session').textContent = JSON.stringify(data, null, 2)
}

/** Signs in with whatever phone opens the claim URL: Better Auth serves the plugin's approval page there. */
async function signInWithPhone(): Promise<void> {
  const order = await client.startOrder({ kind: 'login' })
  const claim = element('claim')
  const link = claim.querySelector('a') as HTMLAnchorElement
  link.href = order.claimUrl
  link.textContent = order.claimUrl
  claim.hidden = false
  try {
    for await (const { status, returnCodeRequired } of client.watchOrder(order)) {
      if (status !== 'approved') continue
      if (returnCodeRequired) await finalizeWithCode(order)
      else await client.finalizeOrder(order)
    }
  } finally {
    claim.hidden = true
    element('code').hidden = true
  }
}

/** Asks for the code that the phone shows, until it is right. The third wrong one ends the order. */
async function finalizeWithCode(order: DesktopOrder): Promise<void> {
  const form = element<HTMLFormElement>('code')
  const says = form.querySelector('output') as HTMLOutputElement
  form.reset()
  says.textContent = ''
  form.hidden = false
  for (;;) {
    const returnCode = await new Promise<string>((resolve) => {
      form.onsubmit = (event) => {
        event.preventDefault()
        resolve(String(new FormData(form).get('code')).trim())
      }
    })
    try {
      await client.finalizeOrder(order, { returnCode })
      return
    } catch (error) {
      if (!(error instanceof CountersignClientError) || error.code !== 'RETURN_CODE_WRONG') throw error
      says.textContent = 'This is not the code on the phone.'
    }
  }
}

const actions: Record<string, () => Promise<unknown>> = {
  'sign-in': () => client.signInWallet(),
  connect: () => countersign.signInWallet(),
  phone: signInWithPhone,
  link: () => client.linkWallet({ wallet: toyWallet() }),
  'sign-out': () => client.signOut(),
}

for (const [id, action] of Object.entries(actions)) {
  element(id).addEventListener('click', async () => {
    try {
      await action()
      await show()
    } catch (error) {
      element('session').textContent = String(error)
    }
  })
}
await show()
