import { bearer, okay, rest } from '../support/rest.ts'
import { proofOf, type TestWallet } from '../support/wallet.ts'

/** The JSON that a call by REST answers, which has to be a success. */
export async function restJson(...call: Parameters<typeof rest>) {
  return okay(await rest(...call))
}

export async function signIn(url: string, wallet: TestWallet) {
  return await restJson(url, '/wallet/verify', proofOf(wallet, await restJson(url, '/wallet/nonce', {})))
}

/** An order that waits for its approval, and that. */
export async function waitingOrder(url: string, wallet: TestWallet, details: object = {}) {
  const { orderId, claimToken, desktopToken } = await restJson(url, '/cross-device/start', {
    kind: 'login',
    ...details,
  })
  const { challengeToken } = await restJson(url, '/cross-device/claim', { orderId, claimToken })
  const challenge = await restJson(url, `/cross-device/challenge?orderId=${orderId}`, undefined, bearer(challengeToken))
  const { publicKeyHex, signatureHex } = proofOf(wallet, { nonceId: '', ...challenge })
  const approval = { orderId, challengeToken, proof: { publicKeyHex, signatureHex }, rememberComputer: true }
  return { holder: { orderId, desktopToken }, approval }
}
