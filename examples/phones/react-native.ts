// React Native: a sign-in of a native application (docs/other-languages.md). `save` keeps the session's token, with expo:
// SecureStore.setItemAsync('countersign.token', token, { keychainAccessible: SecureStore.WHEN_UNLOCKED_THIS_DEVICE_ONLY }).

const auth = 'https://auth.example/api/auth'

/** A wallet that signs a text to the byte. */
export interface Wallet {
  sign(message: string): Promise<{ publicKeyHex: string; signatureHex: string }>
}

export async function signIn(wallet: Wallet, save: (token: string) => Promise<void>): Promise<void> {
  const { nonceId, message } = await post('wallet/nonce', { purpose: 'sign_in' })
  const { token } = await post('wallet/verify', { nonceId, ...(await wallet.sign(String(message))) })
  await save(String(token))
}

async function post(path: string, body: object): Promise<Record<string, unknown>> {
  const options = { method: 'POST', headers: { 'content-type': 'application/json' }, credentials: 'omit' as const }
  const response = await fetch(`${auth}/${path}`, { ...options, body: JSON.stringify(body) })
  const answer = (await response.json()) as Record<string, unknown>
  if (!response.ok) throw new Error(String(answer.code))
  return answer
}
