import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import * as client from 'openid-client'
import { expect, onTestFinished, test } from 'vitest'
import { AdminActions } from '../../src/commands/admin/admin-actions.ts'
import { backupCommand } from '../../src/commands/backup.ts'
import { restoreCommand } from '../../src/commands/restore.ts'
import { openStore } from '../../src/store/open.ts'
import { connect, contentOf, refusalOf, request, shop, startIssuer } from './support.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'countersign-kept-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const streams = { stdin: process.stdin, stdout: new PassThrough(), stderr: process.stderr }
const offline = { scope: 'openid profile offline_access', prompt: 'consent' }

/** The ids of the keys that clients verify with. */
const kidsOf = async (url: string): Promise<readonly string[]> =>
  (await (await fetch(`${url}/.well-known/jwks.json`)).json()).keys.map(({ kid }: { kid: string }) => kid)

test.each([[[]], [['--keep-sessions']]])(
  'a restored store (%s) brings back no code and no token, and keeps what users have allowed and the keys',
  async (switches) => {
    const [at, secret] = [folder(), 'one secret for both of the instances']
    const [store, copy] = [join(at, 'store.db'), join(at, 'copy.db')]
    const first = await startIssuer([shop], { store: `sqlite:${store}`, secret })
    const kids = await kidsOf(first.url)
    const { browser, config, tokens, wallet } = await connect(first.url, offline)
    const asked = await request(config, { scope: 'openid profile' })
    const unused = (await browser.open(asked.address)).address
    await backupCommand([copy, '--store', `sqlite:${store}`], streams)
    // After the copy was made.
    const redeemed = await asked.redeem(unused)
    await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    await first.service.close(0)
    await restoreCommand([copy, '--store', `sqlite:${store}`, ...switches], streams)

    const port = Number(new URL(first.url).port)
    const second = await startIssuer([shop], { store: `sqlite:${store}`, secret, port })
    expect(second.url).toBe(first.url)
    expect(await refusalOf(asked.redeem(unused))).toBe('invalid_grant')
    for (const { refresh_token, access_token } of [tokens, redeemed]) {
      expect(await refusalOf(client.refreshTokenGrant(config, refresh_token ?? ''))).toBe('invalid_grant')
      expect(await client.tokenIntrospection(config, access_token)).toEqual({ active: false })
    }
    expect(await kidsOf(second.url)).toEqual(kids)
    await browser.signIn(wallet)
    const again = await request(config, { scope: 'openid profile' })
    const answer = await browser.open(again.address)
    expect(contentOf(answer.text)).toEqual({})
    expect((await again.redeem(answer.address)).id_token).toBeDefined()
  },
)

test('the export of a user has applications and offline access, and nothing that opens anything', async () => {
  const store = await openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  const { url } = await startIssuer([shop], { store, secret: 'one secret for both of the instances' })
  const { session, tokens } = await connect(url, offline)
  const { apps, offlineAccess } = await new AdminActions(store).export(session.userId)
  expect(apps).toMatchObject([{ clientId: 'shop', scopes: ['openid', 'profile', 'offline_access'] }])
  const { id, userId, adapterId, publicKeyHex, address, createdAt } = session
  expect(offlineAccess).toEqual([{ id, userId, adapterId, publicKeyHex, address, createdAt }])
  const text = JSON.stringify({ apps, offlineAccess })
  for (const secret of [tokens.access_token, tokens.refresh_token ?? '']) expect(text).not.toContain(secret)
})
