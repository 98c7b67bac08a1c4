import { connect, createConfig, http, watchAccount } from '@wagmi/core'
import { mainnet } from '@wagmi/core/chains'
import { client, signIn } from './sign-in'

const config = createConfig({ chains: [mainnet], transports: { [mainnet.id]: http() } })
const show = (text: string) => {
  document.querySelector('p')!.textContent = text
}
const button = (label: string, onClick: () => Promise<unknown>) => {
  const element = Object.assign(document.createElement('button'), { textContent: label })
  element.onclick = () => onClick().catch((error: Error) => show(error.message))
  document.body.append(element)
}

document.body.append(document.createElement('p'))
client.onSession((session) => show(session ? `Signed in as ${session.address}` : 'Signed out'))
client.getCurrentSession().then((session) => show(session ? `Signed in as ${session.address}` : 'Signed out'))
button('Connect', () => connect(config, { connector: config.connectors[0]! }))
button('Sign in', () => signIn(config))
button('Sign out', () => client.signOut())

// The session is the first account's until this one signs in; this dapp signs out.
watchAccount(config, {
  onChange: ({ address }, before) => before.address && address !== before.address && client.signOut(),
})
