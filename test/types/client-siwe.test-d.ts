// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { createCountersignClient } from 'countersign/client'
import { createCountersignClient as overTransport } from 'countersign/client/connect'
import {
  type FormNonce,
  type RainbowKitFunctions,
  rainbowKit,
  type Siwx,
  signInForm,
  siwx,
} from 'countersign/client/siwe'

const client = createCountersignClient()
declare const transport: Parameters<typeof overTransport>[0]['transport']

/** As RainbowKit declares it. */
interface AuthenticationAdapter<Message> {
  getNonce: () => Promise<string>
  createMessage: (args: { nonce: string; address: `0x${string}`; chainId: number }) => Promise<Message> | Message
  verify: (args: { message: Message; signature: string }) => Promise<boolean>
  signOut: () => Promise<void>
}
const adapter: RainbowKitFunctions = rainbowKit(client)
const declared: AuthenticationAdapter<string> = adapter
console.log(declared)

const config: Siwx = siwx(overTransport({ transport }), { required: false })
const message = await config.createMessage({ accountAddress: '0x00', chainId: 'eip155:1' as const })
const chainId: 'eip155:1' = message.chainId
await config.addSession({ data: message, message: message.toString(), signature: '0x00' })

const steps = signInForm(client)
const nonce: FormNonce = await steps.issueNonce({ adapterId: 'solana' })
const text: string = await steps.createMessage(nonce, { address: '0x00', chainId: 1 })
const { session } = await steps.verify(nonce, { address: '0x00', chainId: '1', signature: new Uint8Array(64) })
console.log(chainId, text, session.address)
// @ts-expect-error: there is no form of Nimiq.
await steps.issueNonce({ adapterId: 'nimiq' })
