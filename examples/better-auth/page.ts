import { createAuthClient } from 'better-auth/client'
import nacl from 'tweetnacl'
import { crossDeviceClient, type Wallet, walletSignInClient } from '../../src/better-auth/client/index.ts'
import { createCountersignClient } from '../../src/client/index.ts'

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
  link.textContent = `${order.claimUrl} (code ${order.confirmationCode})`
  claim.hidden = false
  try {
    for await (const { status } of client.watchOrder(order)) {
      if (status === 'approved') await client.finalizeOrder(order)
    }
  } finally {
    claim.hidden = true
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
