import { type Config, getAccount, signMessage } from '@wagmi/core'
import { createCountersignClient } from 'countersign/client'
import { signInForm } from 'countersign/client/siwe'

export const client = createCountersignClient({ baseUrl: 'https://auth.example' })
const { issueNonce, createMessage, verify } = signInForm(client)

/** Call it in the click. Rejects with an error of the wallet, or with a CountersignClientError. */
export async function signIn(config: Config) {
  const { address = '', chainId = 1 } = getAccount(config)
  const nonce = await issueNonce()
  const message = await createMessage(nonce, { address, chainId })
  return await verify(nonce, { address, chainId, signature: await signMessage(config, { message }) })
}
