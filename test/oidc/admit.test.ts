import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { makeWallet } from '../support/wallet.ts'
import { contentOf, decide, fileWith, redirectUri, request, shop, signedIn, startIssuer } from './support.ts'

const [ada, bob] = [makeWallet(), makeWallet()]
const both = { [`nimiq:${ada.address}`]: {}, [`nimiq:${bob.address}`]: {} }
const withoutBob = { [`nimiq:${ada.address}`]: {} }

/** An issuer for the people of a file, and one of them who is signed in. */
async function start() {
  const people = fileWith(both)
  const { url, service } = await startIssuer([shop], { people, admit: 'people' })
  const list = async (content: object) => {
    writeFileSync(people, JSON.stringify(content))
    await service.reload()
  }
  const { browser, config } = await signedIn(url, bob)
  const open = async (parameters: Record<string, string> = {}) => {
    const { address, redeem } = await request(config, parameters)
    return { ...(await browser.open(address)), redeem }
  }
  return { list, browser, open }
}

test('a user who has left the people file is asked to sign in, and an application that asks for no page is told so', async () => {
  const { list, open, browser } = await start()
  const { redeem, ...asked } = await open()
  await redeem(await decide(browser, asked))
  // Without a question, by the consent of before.
  expect((await open()).address.href).toMatch(`${redirectUri}?code=`)
  const halfway = await open({ prompt: 'consent' })
  await list(withoutBob)
  const { sessionId } = contentOf(halfway.text)
  expect((await browser.post(halfway.address.pathname, { allow: true, sessionId })).status).toBe(400)
  expect((await open()).address.pathname).toBe('/api/auth/sign-in')
  expect((await open({ prompt: 'none' })).address.searchParams.get('error')).toBe('login_required')
  await list(both)
  expect((await open()).address.href).toMatch(`${redirectUri}?code=`)
})
