// Messages of sign-ins and wallets. ACCOUNT_URL is the address of the account page. A message has the time of the event,
// which can be up to three days ago, and no link that signs in.
const advice: Record<string, [string, string]> = {
  'sign_in.succeeded': ['New sign-in', 'If it was not you, sign that session out.'],
  'wallet.linked': ['Wallet added', 'In 24 hours it can approve requests. If it is not yours, remove it now.'],
  'wallet.unlinked': ['Wallet removed', 'If it was not you, sign out all other sessions, and write to us.'],
}

export function accountMessage({ type, timestamp, data }): [string, string, string] | undefined {
  const [about, whatToDo] = advice[type] ?? []
  // The desktop may fetch the token of one sign-in twice.
  if (about === undefined || data.repeated) return
  const address = data.address.replace(/^.*:/, '')
  const wallet = address.length < 20 ? address : `${address.slice(0, 9)} … ${address.slice(-4)}`
  const time = timestamp.slice(0, 16).replace('T', ' ')
  const what = `${wallet}, ${time} UTC, at ${data.origin ?? 'a program'}. ${whatToDo}`
  return [about, what, process.env.ACCOUNT_URL ?? '']
}
