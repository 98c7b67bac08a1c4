import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { createCountersign } from '../../src/index.ts'
import { run } from '../support/command.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { root } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'

const key = Buffer.from('a secret of the tests, and of no use')
const webhookSecret = `whsec_${key.toString('base64')}`
const accountUrl = 'https://auth.example/api/auth/account'
const approvalUrl = 'https://auth.example/api/auth/inbox?order=abcdefghijklmnopqrstuv&x=1'

/** A title with all that one of the ways would take for its own. */
const evil = 'Pay <!channel> <https://evil.example|here> & "more"\r\nBcc: thief@evil.example\r\n\r\n<b>bold</b>'

/** The programs of examples/messages, run with servers of their own: HTTP for ntfy and Slack, SMTP for mail. */
describe.skipIf(!hasPart('npm registry') || !hasPart('an SMTP server of Python'))('the receiver', () => {
  let folder: string
  let port: number
  let settings: Record<string, string>
  let receiver: ReturnType<typeof start>
  let smtpPort: number
  let smtp: ChildProcessWithoutNullStreams
  const posts: { url: string; authorization: string | undefined; json: Record<string, string> }[] = []
  let slackAnswers: object = { ok: true }
  const web = createServer(async (request, response) => {
    posts.push({
      url: String(request.url),
      authorization: request.headers.authorization,
      json: JSON.parse(await text(request)),
    })
    response.end(JSON.stringify(slackAnswers))
  })
  let mails = ''
  const ending: (() => unknown)[] = []

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'countersign-messages-'))
    const install = ['install', '--no-audit', '--no-fund', '--loglevel=error', 'standardwebhooks', 'nodemailer']
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    await run('npm', install, { cwd: folder })
    await cp(join(root, 'examples/messages'), folder, { recursive: true })
    const ada = { ntfy: 'topic-of-ada', slack: 'U012AB3CD', mail: 'ada@example.com' }
    await writeFile(join(folder, 'people.json'), JSON.stringify({ ada }))
    await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
    smtpPort = await freePort()
    smtp = startSmtp()
    port = await freePort()
    const webUrl = `http://127.0.0.1:${(web.address() as AddressInfo).port}`
    settings = {
      PORT: String(port),
      COUNTERSIGN_WEBHOOK_SECRET: webhookSecret,
      ACCOUNT_URL: accountUrl,
      NTFY_URL: `${webUrl}/ntfy`,
      NTFY_TOKEN: 'token of ntfy',
      SLACK_URL: `${webUrl}/slack`,
      SLACK_TOKEN: 'token of slack',
      SMTP_URL: `smtp://127.0.0.1:${smtpPort}`,
      MAIL_FROM: 'auth@example.com',
    }
    receiver = start(settings)
    ending.push(
      () => smtp.kill(),
      () => receiver.kill(),
      () => web.close(),
      () => rm(folder, { recursive: true }),
    )
    await listening()
  }, 120_000)
  afterAll(async () => {
    for (const end of ending) await end()
  })

  function start(env: Record<string, string>) {
    return spawn(process.execPath, ['receiver.ts'], { cwd: folder, env: { PATH: String(process.env.PATH), ...env } })
  }

  async function listening(): Promise<void> {
    const asked = async () => expect((await send('msg_0', { type: 'order.started', data: {} })).status).toBe(200)
    await vi.waitFor(asked, { timeout: 20_000 })
  }

  /** A server that prints what it gets. */
  function startSmtp() {
    const server = ['-u', '-W', 'ignore', '-m', 'smtpd', '-n', '-c', 'DebuggingServer', `127.0.0.1:${smtpPort}`]
    const process = spawn(systemPython, server)
    process.stdout.on('data', (chunk) => {
      mails += chunk
    })
    return process
  }

  /** Sends an event as Standard Webhooks says, with a signature by this key. */
  async function send(id: string, event: object, signingKey = key): Promise<Response> {
    const body = JSON.stringify({ timestamp: new Date().toISOString(), ...event })
    const timestamp = String(Math.floor(Date.now() / 1000))
    const signature = createHmac('sha256', signingKey).update(`${id}.${timestamp}.${body}`).digest('base64')
    const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
    return await fetch(`http://localhost:${port}`, { method: 'POST', body, headers })
  }

  const addressed = (title?: string) => ({
    type: 'order.addressed',
    data: { orderId: 'abcdefghijklmnopqrstuv', userId: 'ada', title, approvalUrl },
  })
  /** What has arrived since the last call. */
  const arrived = () => {
    const found = { posts: posts.splice(0), mails }
    mails = ''
    return found
  }

  test('sends a title by each way as text, and nothing that it has in it takes effect', async () => {
    arrived()
    expect((await send('msg_1', addressed(evil))).status).toBe(200)
    await expect.poll(() => mails).toContain('END MESSAGE')
    const { posts: seen, mails: mailed } = arrived()
    expect(seen).toEqual([
      {
        url: '/ntfy',
        authorization: 'Bearer token of ntfy',
        json: { topic: 'topic-of-ada', title: 'Approval needed', message: evil, click: approvalUrl },
      },
      {
        url: '/slack/api/chat.postMessage',
        authorization: 'Bearer token of slack',
        json: { channel: 'U012AB3CD', text: expect.stringContaining('Pay &lt;!channel&gt; &lt;https://evil') },
      },
    ])
    expect(seen[1]?.json.text).toContain(`<${approvalUrl.replace('&', '&amp;')}|Open>`)
    // Printed by Python line by line, each as b'…'.
    const lines = [...mailed.matchAll(/^b(['"])(.*)\1$/gm)].map(([, , line = '']) => line)
    const headers = lines.slice(0, lines.indexOf('X-Peer: 127.0.0.1'))
    expect(headers).toContain('To: ada@example.com')
    expect(
      headers.filter((line) => /^ |^(From|To|Subject|Message-ID|Date|MIME-Version|Content-Type): /.test(line)),
    ).toEqual(headers)
    expect(headers.find((line) => line.startsWith('Subject'))).toContain('Approval_needed=3A_Pay_=3C!channel=3E')
    const [, html = ''] = lines.join('\n').replace(/=\n/g, '').split('Content-Type: text/html')
    expect(html).toContain('&#60;b&#62;bold&#60;/b&#62;')
    expect(html).not.toContain('<b>bold')
  })

  test('sends an event that comes twice once, also at the same time', async () => {
    arrived()
    const answers = await Promise.all([send('msg_2', addressed('Twice')), send('msg_2', addressed('Twice'))])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    await send('msg_2', addressed('Twice'))
    const { posts: seen, mails: mailed } = arrived()
    expect(seen.map(({ url }) => url)).toEqual(['/ntfy', '/slack/api/chat.postMessage'])
    expect(mailed.match(/END MESSAGE/g)).toHaveLength(1)
  })

  test('has an event sent again of which a way failed, and then sends by the others only', async () => {
    arrived()
    slackAnswers = { ok: false, error: 'ratelimited' }
    expect((await send('msg_3', addressed('Again'))).status).toBe(503)
    slackAnswers = { ok: true }
    expect((await send('msg_3', addressed('Again'))).status).toBe(200)
    const { posts: seen, mails: mailed } = arrived()
    expect(seen.map(({ url }) => url)).toEqual(['/ntfy', '/slack/api/chat.postMessage', '/slack/api/chat.postMessage'])
    expect(mailed.match(/END MESSAGE/g)).toHaveLength(1)
  })

  test('says when something happened, however late it comes, and nothing when a token is fetched again', async () => {
    arrived()
    const wallet = {
      userId: 'ada',
      adapterId: 'ethereum',
      address: 'eip155:1:0x1234567890abcdef1234567890abcdef12345678',
    }
    await send('msg_4', { type: 'wallet.linked', timestamp: '2026-01-02T03:04:05.678Z', data: wallet })
    await send('msg_5', { type: 'sign_in.succeeded', data: { ...wallet, repeated: true } })
    const { posts: seen } = arrived()
    expect(seen.map(({ url }) => url)).toEqual(['/ntfy', '/slack/api/chat.postMessage'])
    expect(seen[0]?.json).toEqual({
      topic: 'topic-of-ada',
      title: 'Wallet added',
      message:
        '0x1234567 … 5678, 2026-01-02 03:04 UTC, at a program. ' +
        'In 24 hours it can approve requests. If it is not yours, remove it now.',
      click: accountUrl,
    })
  })

  describe('of a service, whose every event comes twice because the first answer is lost,', () => {
    const origin = 'https://app.example'
    /** Statuses of the receiver that reached the service. */
    const answered: number[] = []
    let lastEvent: { readonly headers: Record<string, string>; readonly body: string } | undefined
    let url: string

    beforeAll(async () => {
      const lost = new Set<unknown>()
      const between = createServer(async (request, response) => {
        const all = request.headers as Record<string, string>
        const headers = Object.fromEntries(Object.entries(all).filter(([name]) => name.startsWith('webhook-')))
        lastEvent = { headers, body: await text(request) }
        const { status } = await fetch(`http://localhost:${port}`, { method: 'POST', ...lastEvent })
        if (status === 200 && !lost.has(headers['webhook-id'])) {
          lost.add(headers['webhook-id'])
          return request.socket.destroy()
        }
        response.writeHead(status).end()
        answered.push(status)
      })
      await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve))
      const service = await createCountersign({
        port: 0,
        store: 'sqlite::memory:',
        logger: silentLogger,
        publicUrl: 'https://auth.example',
        trustedOrigins: [origin],
        webhook: { url: `http://127.0.0.1:${(between.address() as AddressInfo).port}`, secret: webhookSecret },
      })
      url = `http://localhost:${await service.listen()}`
      ending.push(
        () => service.close(0),
        () => between.close(),
      )
    })

    /** Resolves when the service has an answer to this many events, with the mails, as their readers see them. */
    async function mailsAfter(events: number): Promise<string[]> {
      await vi.waitFor(() => expect(answered.filter((status) => status === 200)).toHaveLength(events), {
        timeout: 60_000,
      })
      answered.length = 0
      const printed = arrived().mails.split('MESSAGE FOLLOWS').slice(1)
      return printed.map((mail) => {
        const lines = [...mail.matchAll(/^b(['"])(.*)\1$/gm)].map(([, , line = '']) => line)
        const unfolded = lines.join('\n').replaceAll('=\n', '').replaceAll('?=\n =?UTF-8?Q?', '')
        return decodeURIComponent(unfolded.replaceAll('%', '%25').replace(/=([0-9A-F]{2})/g, '%$1'))
      })
    }
    const call = async (path: string, body: object, token = '') => {
      const { status, json } = await rest(url, path, body, { origin, authorization: `Bearer ${token}` })
      expect(status).toBe(200)
      return json
    }
    const signIn = async (wallet: TestWallet) =>
      (await rest(url, '/wallet/verify', proofOf(wallet, await call('/wallet/nonce', {})), { origin })).json
    const short = ({ address }: TestWallet) => `${address.slice(0, 9)} … ${address.slice(-4)}`

    test('a sign-in, a wallet that is added and one that is removed are one mail each, which signs nobody in', async () => {
      const [wallet, second] = [makeWallet(), makeWallet()]
      const { session } = await signIn(wallet)
      expect(await mailsAfter(1)).toEqual([])
      await writeFile(join(folder, 'people.json'), JSON.stringify({ [session.userId]: { mail: 'eve@example.com' } }))
      const { token, session: seen } = await signIn(wallet)
      const [signedIn = '', ...more] = await mailsAfter(1)
      const { nonceId, ...proof } = proofOf(second, await call('/wallet/nonce', { purpose: 'link' }, token))
      await call('/wallet/link', { nonceId, proof }, token)
      const [added = '', ...moreAdded] = await mailsAfter(1)
      await call('/wallet/unlink', { adapterId: 'nimiq', address: second.address }, token)
      const [removed = '', ...moreRemoved] = await mailsAfter(1)
      expect([...more, ...moreAdded, ...moreRemoved]).toEqual([])

      const minute = /\d{4}-\d\d-\d\d \d\d:\d\d UTC/
      for (const [mail, about, { address }, advice] of [
        [signedIn, 'New sign-in', wallet, 'If it was not you, sign that session out.'],
        [added, 'Wallet added', second, 'If it is not yours, remove it now.'],
        [removed, 'Wallet removed', second, 'write to us.'],
      ] as const) {
        expect(mail).toContain('To: eve@example.com')
        expect(mail).toContain(`Subject: =?UTF-8?Q?${about.replace(' ', '_')}:`)
        expect(mail).toContain(`${short({ address } as TestWallet)}, `)
        expect(mail).toMatch(minute)
        expect(mail).toContain(`at ${origin}. `)
        expect(mail).toContain(advice)
        expect(mail).toContain(`\n${accountUrl}\n`)
        expect(new Set(mail.match(/https:[^\s"<]+?(?=[\s"<]|\. )/g))).toEqual(new Set([origin, accountUrl]))
        for (const secret of ['css_', token, seen.id, session.userId, address]) expect(mail).not.toContain(secret)
      }
    })

    test('no mail is lost while the mail server is away, and none comes again after the receiver starts anew', async () => {
      const exited = once(smtp, 'exit')
      smtp.kill()
      await exited
      const wallet = makeWallet()
      arrived()
      const { session } = await signIn(wallet)
      await writeFile(join(folder, 'people.json'), JSON.stringify({ [session.userId]: { mail: 'eve@example.com' } }))
      await vi.waitFor(() => expect(answered).toContain(503), { timeout: 60_000 })
      smtp = startSmtp()
      expect(await mailsAfter(1)).toEqual([expect.stringContaining(short(wallet))])

      const ended = once(receiver, 'exit')
      receiver.kill()
      await ended
      receiver = start(settings)
      await listening()
      const again = await fetch(`http://localhost:${port}`, { method: 'POST', ...lastEvent })
      expect([again.status, arrived().mails]).toEqual([200, ''])
    })
  })

  test('sends nothing for other events, other users, or another key', async () => {
    arrived()
    await send('msg_6', { type: 'order.started', data: { userId: 'ada' } })
    await send('msg_7', { ...addressed('x'), data: { ...addressed('x').data, userId: 'bob' } })
    expect((await send('msg_8', addressed('Forged'), Buffer.from('another key of the tests, of no use'))).status).toBe(
      401,
    )
    expect(arrived()).toEqual({ posts: [], mails: '' })
  })
})
