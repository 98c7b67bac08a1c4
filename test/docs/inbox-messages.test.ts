import { execFile, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { hasPart, systemPython } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { blocksOf } from './blocks.ts'

/** What docs/inbox-messages.md has in it, run with its own servers: HTTP for ntfy and Slack, SMTP for mail. */
const page = await readFile(new URL('../../docs/inbox-messages.md', import.meta.url), 'utf8')
const names = ['receiver.ts', 'ntfy.ts', 'slack.ts', 'mail.ts']
const key = Buffer.from('a secret of the tests, and of no use')
const approvalUrl = 'https://auth.example/api/auth/inbox?order=abcdefghijklmnopqrstuv&x=1'

/** A title with all that one of the ways would take for its own. */
const evil = 'Pay <!channel> <https://evil.example|here> & "more"\r\nBcc: thief@evil.example\r\n\r\n<b>bold</b>'

test('the page has the files that it names, in their order', () => {
  expect(blocksOf(page).map(({ language }) => language)).toEqual(names.map(() => 'ts'))
  for (const name of names) expect(page).toContain(`\`${name}\``)
})

describe.skipIf(!hasPart('npm registry') || !hasPart('an SMTP server of Python'))('the receiver', () => {
  let folder: string
  let port: number
  let receiver: ReturnType<typeof start>
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
    await promisify(execFile)('npm', install, { cwd: folder })
    for (const [index, { text: code }] of blocksOf(page).entries()) {
      await writeFile(join(folder, String(names[index])), code)
    }
    const ada = { ntfy: 'topic-of-ada', slack: 'U012AB3CD', mail: 'ada@example.com' }
    await writeFile(join(folder, 'people.json'), JSON.stringify({ ada }))
    await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
    const smtpPort = await freePort()
    const server = ['-u', '-W', 'ignore', '-m', 'smtpd', '-n', '-c', 'DebuggingServer', `127.0.0.1:${smtpPort}`]
    const smtp = spawn(systemPython, server)
    smtp.stdout.on('data', (chunk) => {
      mails += chunk
    })
    port = await freePort()
    const webUrl = `http://127.0.0.1:${(web.address() as AddressInfo).port}`
    receiver = start({
      PORT: String(port),
      COUNTERSIGN_WEBHOOK_SECRET: `whsec_${key.toString('base64')}`,
      ACCOUNT_URL: 'https://auth.example/api/auth/account',
      NTFY_URL: `${webUrl}/ntfy`,
      NTFY_TOKEN: 'token of ntfy',
      SLACK_URL: `${webUrl}/slack`,
      SLACK_TOKEN: 'token of slack',
      SMTP_URL: `smtp://127.0.0.1:${smtpPort}`,
      MAIL_FROM: 'auth@example.com',
    })
    ending.push(
      () => smtp.kill(),
      () => receiver.kill(),
      () => web.close(),
      () => rm(folder, { recursive: true }),
    )
    await vi.waitFor(
      async () => expect((await send('msg_0', { type: 'sign_in.succeeded', data: {} })).status).toBe(200),
      {
        timeout: 20_000,
      },
    )
  }, 120_000)
  afterAll(async () => {
    for (const end of ending) await end()
  })

  function start(env: Record<string, string>) {
    return spawn(process.execPath, ['receiver.ts'], { cwd: folder, env: { PATH: String(process.env.PATH), ...env } })
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
    await vi.waitFor(() => expect(mails).toContain('END MESSAGE'))
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

  test('sends that a wallet was added, and from when on it can approve', async () => {
    arrived()
    await send('msg_4', { type: 'wallet.linked', data: { userId: 'ada', adapterId: 'nimiq', address: 'NQ' } })
    expect(arrived().posts[0]?.json).toMatchObject({
      message: expect.stringContaining('24 hours'),
      click: 'https://auth.example/api/auth/account',
    })
  })

  test('sends nothing for other events, other users, or another key', async () => {
    arrived()
    await send('msg_5', { type: 'order.started', data: { userId: 'ada' } })
    await send('msg_6', { ...addressed('x'), data: { ...addressed('x').data, userId: 'bob' } })
    expect((await send('msg_7', addressed('Forged'), Buffer.from('another key of the tests, of no use'))).status).toBe(
      401,
    )
    expect(arrived()).toEqual({ posts: [], mails: '' })
  })
})
