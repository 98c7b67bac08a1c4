import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect as connectTo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { hasPart } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { trustedAuthority } from '../support/tls.ts'
import { makeWallet, type TestWallet } from '../support/wallet.ts'
import {
  AppBrowser,
  appUrl,
  askedIn,
  clientSecret,
  minuteMs,
  peopleFile,
  programs,
  signIn,
  startIssuer,
  startProgram,
} from './applications.ts'
import { Browser, connect, shop } from './support.ts'

const isComplete = ['openssl', 'Roundcube and Dovecot'].every(hasPart)
const authority = isComplete ? await trustedAuthority() : undefined
vi.setConfig({ testTimeout: 3 * minuteMs })

const [ada, bob] = [makeWallet(), makeWallet()]

/** The settings of the example, for this issuer. */
function settingsOf(file: string, issuer: string): string {
  const text = readFileSync(join(programs, 'roundcube', file), 'utf8').replace('<?php\n', '')
  return text.replaceAll('auth.example', new URL(issuer).host).replaceAll('the-same-secret', clientSecret)
}

/** Starts Dovecot with the settings of the example, and what they leave open. Resolves with its port and what delivers. */
async function startDovecot(issuer: string) {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-dovecot-'))
  chmodSync(folder, 0o711)
  mkdirSync(join(folder, 'mail'))
  chmodSync(join(folder, 'mail'), 0o777)
  copyFileSync(authority!.cert, join(folder, 'authority.pem'))
  const [port, file] = [await freePort(), join(folder, 'dovecot.conf')]
  const oauth2 = settingsOf('dovecot-oauth2.conf.ext', issuer)
  writeFileSync(join(folder, 'dovecot-oauth2.conf.ext'), `${oauth2}\ntls_ca_cert_file = ${folder}/authority.pem\n`)
  writeFileSync(
    file,
    `
      ${settingsOf('dovecot.conf', issuer).replaceAll('/etc/dovecot', folder)}
      base_dir = ${folder}/run
      state_dir = ${folder}/state
      log_path = ${folder}/log
      protocols = imap
      listen = 127.0.0.1
      ssl = no
      mail_location = maildir:~/Maildir
      userdb {
        driver = static
        args = uid=nobody gid=nogroup allow_all_users=yes home=${folder}/mail/%u
      }
      service imap-login {
        inet_listener imap {
          port = ${port}
        }
        inet_listener imaps {
          port = 0
        }
      }
    `,
  )
  const child = spawn('dovecot', ['-F', '-c', file], { stdio: ['ignore', 'inherit', 'inherit'] })
  const exited = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await exited
    rmSync(folder, { recursive: true, force: true })
  })
  await expect.poll(() => listens(port), { timeout: minuteMs }).toBe(true)
  return {
    port,
    /** Puts a message into the mailbox of a user. */
    deliver(userId: string, subject: string) {
      const input = `From: Bob <bob@mail.example>\r\nSubject: ${subject}\r\n\r\nHello.\r\n`
      execFileSync('/usr/lib/dovecot/dovecot-lda', ['-c', file, '-d', userId], { input })
    },
  }
}

async function listens(port: number): Promise<boolean> {
  const socket = connectTo(port, '127.0.0.1')
  const isConnected = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return isConnected
}

/** How Dovecot answers to a token. */
async function logIn(port: number, userId: string, token: string): Promise<string> {
  const socket = connectTo(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const response = Buffer.from(`user=${userId}\x01auth=Bearer ${token}\x01\x01`).toString('base64')
  // The empty line is for its error, which comes as a challenge.
  socket.write(`a AUTHENTICATE XOAUTH2 ${response}\r\n\r\n`)
  for await (const line of createInterface(socket)) {
    if (line.startsWith('a ')) return line.split(' ')[1]!
  }
  throw new Error('no answer')
}

const root = '/var/lib/roundcube/public_html'

/** Starts Roundcube with the settings of the example. Resolves with its port and the file of its database. */
async function startRoundcube(
  issuer: string,
  imapPort: number,
): Promise<{ readonly port: number; readonly database: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-roundcube-'))
  const database = join(folder, 'users.db')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ['defaults.inc.php', 'mimetypes.php']) symlinkSync(`/etc/roundcube/${name}`, join(folder, name))
  writeFileSync(
    join(folder, 'config.inc.php'),
    `<?php
      $config['db_dsnw'] = 'sqlite:///${database}?mode=0600';
      $config['imap_host'] = '127.0.0.1:${imapPort}';
      $config['des_key'] = 'a key that has 24 letters';
      $config['log_dir'] = $config['temp_dir'] = '${folder}';
      $config['use_https'] = true;
      $config['enable_spellcheck'] = false;
      ${settingsOf('config.inc.php', issuer)}
    `,
  )
  const port = await startProgram({
    command: (port) => ['php', '-d', `openssl.cafile=${authority!.cert}`, '-S', `127.0.0.1:${port}`, '-t', root],
    folder,
    authority: authority!,
    environment: { ROUNDCUBE_CONFIG_DIR: folder },
  })
  return { port, database }
}

describe.skipIf(!isComplete)('Roundcube with Dovecot', () => {
  const metadata = {
    client_id: 'roundcube',
    client_name: 'Webmail',
    client_secret: clientSecret,
    redirect_uris: [`${appUrl}/index.php/login/oauth`],
    grant_types: ['authorization_code', 'refresh_token'],
  }

  async function start(of: object, options: CountersignOptions = {}) {
    const url = await startIssuer(authority!, options, { metadata, pkce: 'optional', ...of }, shop)
    const dovecot = await startDovecot(url)
    const { port, database } = await startRoundcube(url, dovecot.port)
    const enter = async (wallet: TestWallet) => {
      const [app, issuer] = [new AppBrowser(port), new Browser(url)]
      const begin = async () => (await app.open('/?_task=login&_action=oauth')).address
      const { request, consents, text } = await signIn(app, issuer, wallet, begin)
      expect(askedIn(request)).toEqual({ scope: 'openid', hasPkce: false })
      /** Subjects of the messages that its page lists, or why it lists none. */
      const list = async () => {
        const headers = { 'x-requested-with': 'XMLHttpRequest' }
        const { exec } = await (await app.fetch('/?_task=mail&_action=list&_remote=1', { headers })).json()
        const [refusal] = /Authentication failed|session is invalid/.exec(exec) ?? []
        return refusal ?? [...exec.matchAll(/"subject":"(.*?)"/g)].map(([, subject]) => subject)
      }
      return { issuer, consents, text, list }
    }
    return { url, dovecot, database, enter }
  }

  /** Starts, and puts one message into the mailbox of a wallet's user. */
  async function startWithMail(of: object, options: CountersignOptions = {}) {
    const started = await start(of, options)
    const { session } = await new Browser(started.url).signIn(ada)
    started.dovecot.deliver(session.userId, 'Tulips')
    return started
  }

  test.each([{}, { email: '{user_id}@users.example' }])(
    'a wallet finds the mail of its user until it signs out at the issuer, with oidc %o',
    async (oidc) => {
      const { enter } = await startWithMail({}, { oidc })
      const first = await enter(ada)
      expect([first.consents, await first.list()]).toEqual([1, ['Tulips']])
      expect(await (await enter(bob)).list()).toEqual([])
      const second = await enter(ada)
      expect([second.consents, await second.list()]).toEqual([0, ['Tulips']])
      await first.issuer.post('/api/auth/sign-out', {})
      expect(await first.list()).toBe('Authentication failed')
      expect(await second.list()).toEqual(['Tulips'])
    },
  )

  test('a wallet of no group of the client gets no mail', async () => {
    const { enter } = await startWithMail({ groups: ['staff'] }, { people: peopleFile([ada, { groups: ['staff'] }]) })
    expect(await (await enter(ada)).list()).toEqual(['Tulips'])
    const outside = await enter(bob)
    expect(outside.text).toContain('the user declined')
    expect(await outside.list()).toBe('session is invalid')
  })

  test('Dovecot takes tokens of Roundcube only, and only for their own user', async () => {
    const { url, dovecot } = await start({})
    const [redirect_uri = ''] = metadata.redirect_uris
    const own = await connect(url, { redirect_uri }, { ...shop.metadata, ...metadata })
    const other = await connect(url)
    const answer = ({ session, tokens }: typeof own, userId = session.userId) =>
      logIn(dovecot.port, userId, tokens.access_token)
    expect(await answer(own)).toBe('OK')
    expect(await answer(other)).toBe('NO')
    expect(await answer(own, other.session.userId)).toBe('NO')
  })

  test.each([
    [10, ['Tulips']],
    [0, 'Authentication failed'],
  ])(
    'the mail stays when tokens expire, and with %i seconds of grace two requests at once see %o',
    async (seconds, seen) => {
      const { enter, database } = await startWithMail({ refresh_grace_seconds: seconds })
      const { list } = await enter(ada)
      const db = new DatabaseSync(database)
      onTestFinished(() => db.close())
      const rows = () => db.prepare('SELECT sess_id, vars FROM session').all() as { sess_id: string; vars: string }[]
      const textOf = ({ vars }: { readonly vars: string }) => Buffer.from(vars, 'base64').toString('latin1')
      const { sess_id } = rows().find((row) => textOf(row).includes('oauth_token'))!
      const read = () => textOf(rows().find((row) => row.sess_id === sess_id)!)
      const write = (vars: string) =>
        db
          .prepare('UPDATE session SET vars = ? WHERE sess_id = ?')
          .run(Buffer.from(vars, 'latin1').toString('base64'), sess_id)
      const expired = read().replace(/("expires";i:)\d+/, '$11')
      expect(expired).toContain('"expires";i:1;')
      write(expired)
      expect(await list()).toEqual(['Tulips'])
      expect(read()).not.toContain('"expires";i:1;')
      // As a request that has read the session before the first one has written it.
      write(expired)
      expect(await list()).toEqual(seen)
    },
  )
})
