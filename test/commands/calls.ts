import { expect } from 'vitest'
import { bearer, rest } from '../support/rest.ts'
import { proofOf, type TestWallet } from '../support/wallet.ts'

/** The answer of a call by REST, which has to be a success. */
export async function okay(...call: Parameters<typeof rest>) {
  const answer = await rest(...call)
  expect(answer.status, JSON.stringify(answer.json)).toBe(200)
  return answer.json
}

export async function signIn(url: string, wallet: TestWallet) {
  return await okay(url, '/wallet/verify', proofOf(wallet, await okay(url, '/wallet/nonce', {})))
}

/** An order that waits for its approval, and that. */
export async function waitingOrder(url: string, wallet: TestWallet, details: object = {}) {
  const { orderId, claimToken, desktopToken } = await okay(url, '/cross-device/start', { kind: 'login', ...details })
  const { challengeToken } = await okay(url, '/cross-device/claim', { orderId, claimToken })
  const challenge = await okay(url, `/cross-device/challenge?orderId=${orderId}`, undefined, bearer(challengeToken))
  const { publicKeyHex, signatureHex } = proofOf(wallet, { nonceId: '', ...challenge })
  const approval = { orderId, challengeToken, proof: { publicKeyHex, signatureHex }, rememberComputer: true }
  return { holder: { orderId, desktopToken }, approval }
}
