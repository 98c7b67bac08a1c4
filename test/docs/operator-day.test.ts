import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { packPackage } from '../../scripts/pack.ts'
import type { Result } from '../../src/commands/doctor/check.ts'
import { Terminal } from '../newcomer/terminal.ts'
import { proxyPorts, startDeployed } from '../support/deployed-proxies.ts'
import { hasPart } from '../support/optional.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { freePort } from '../support/redis-server.ts'
import { root } from '../support/repository.ts'
import { bearer, rest } from '../support/rest.ts'
import { executedSnippets } from '../support/snippets.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type TrustedAuthority, trustedAuthority } from '../support/tls.ts'
import { makeWallet, proofOf, type TestWallet } from '../support/wallet.ts'

/**
 * What an operator does before real users come, by the checklist of docs/operations.md, with docs/postgresql.md and
 * deploy/nginx: all commands are those of the pages, but for names, addresses and the password.
 */

const parts = ['postgresql', 'nginx', 'openssl', 'curl', 'npm registry']
const canStart = parts.map(hasPart).every(Boolean)
const authority = canStart ? await trustedAuthority() : undefined
const password = 'a password of this test, with @ and /'

/** A PostgreSQL whose administrator needs no password, and whose other users need one, by TLS. */
async function startServer({ issue }: TrustedAuthority): Promise<PostgresServer> {
  const server = await PostgresServer.start({ certificate: await issue('localhost'), settings: { fsync: 'on' } })
  onTestFinished(() => server[Symbol.asyncDispose]())
  const rules = 'host all postgres all trust\nhostssl all all all scram-sha-256\n'
  await writeFile(join(server.data, 'pg_hba.conf'), rules)
  await server.psql('SELECT pg_reload_conf()')
  return server
}

/** The first line of a page that contains a text. */
async function lineOf(page: string, text: string): Promise<string> {
  const lines = (await readFile(join(root, 'docs', page), 'utf8')).split('\n')
  return lines.find((line) => line.includes(text)) ?? ''
}

test.skipIf(!canStart)(
  'the pages bring up two instances on PostgreSQL behind nginx, and bring them back from a dump without its past',
  async () => {
    const server = await startServer(authority!)
    const folder = temporaryFolder()
    await mkdir(join(folder, 'opt'))
    const shell = new Terminal(join(folder, 'opt'), dirname(process.execPath))
    await shell.type(
      `npm init -y\nnpm install ${await packPackage()}\n${await lineOf('postgresql.md', 'npm install pg')}`,
    )

    // 1 to 3: TLS, origins and proxies, as docs/proxies.md has them.
    const ports = await proxyPorts()
    const publicUrl = `https://localhost:${ports.port}`
    const names = ['PUBLIC_URL', 'TRUSTED_ORIGINS', 'TRUST_PROXY'].map((name) =>
      lineOf('proxies.md', `COUNTERSIGN_${name}=`),
    )
    const settings = (await Promise.all(names)).map((line) => line.replaceAll('https://auth.example', publicUrl))
    // 4 and 5: the store's address with its password, and the secret, in files.
    const [made = '', dump = '', restore = ''] = (await executedSnippets('docs/postgresql.md')).map(({ code }) => code)
    const [store, secret] = [join(folder, 'store'), join(folder, 'secret')]
    const address = `postgres://countersign:${encodeURIComponent(password)}@localhost:${server.port}/countersign`
    await writeFile(store, `${address}?sslrootcert=${encodeURIComponent(authority!.cert)}&sslmode=verify-full\n`)
    await shell.type(`umask 077\nopenssl rand -base64 32 > ${secret}\nchmod 400 ${secret} ${store}`)
    const environment = join(folder, 'environment')
    settings.push(`COUNTERSIGN_STORE_FILE=${store}`, `COUNTERSIGN_SECRET_FILE=${secret}`, 'NODE_ENV=production')
    await writeFile(environment, `${settings.join('\n')}\n`)

    const trust = `export NODE_EXTRA_CA_CERTS=${authority!.cert}`
    const [typed = ''] = /node --env-file=\S+ \S+main\.js/.exec(await lineOf('operations.md', '--env-file=')) ?? []
    const node = typed.replace('/etc/countersign/environment', environment)
    /** Types a block of docs/postgresql.md. */
    const type = (block: string) =>
      shell.type(
        `countersign() { ${node} "$@"; }\n` +
          block.replaceAll('db.example', `localhost:${server.port}`).replace("'password'", `'${password}'`),
      )
    await type(made)
    const owner = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'countersign'"
    expect(await server.psql(owner, 'countersign')).toBe('postgres')
    const applicationPorts = [await freePort(), await freePort()] as const
    const metricsPorts = [await freePort(), await freePort()] as const
    // 6: the process.
    const start = (index: 0 | 1) =>
      shell.start(
        `PORT=${applicationPorts[index]} COUNTERSIGN_METRICS_PORT=${metricsPorts[index]} exec ${node}`,
        /"text":"ready"/,
      )
    let instances = await Promise.all([start(0), start(1)])
    const certificate = await authority!.issue('localhost', 90)
    await startDeployed('nginx', { ...ports, upstreams: applicationPorts, certificate })

    // 7: the checks of proxy and orchestrator.
    const curl = (url: string) => shell.type(`curl -fsS --cacert ${authority!.cert} ${url}`)
    for (const path of ['healthz', 'readyz']) expect(await curl(`${publicUrl}/${path}`)).toMatch(/ok|ready/)

    // 10: doctor.
    const doctor = async (): Promise<string[]> => {
      const checks: readonly Result[] = JSON.parse(
        await shell.type(`${trust}\nPORT=${applicationPorts[0]} ${node} doctor --json`),
      ).checks
      return checks
        .filter(({ status }) => status !== 'skipped')
        .map(({ check, status, saw }) => `${status} ${check}: ${saw}`)
    }
    expect((await doctor()).filter((line) => !line.startsWith('ok '))).toEqual([])

    const call = async (path: string, body?: object, token?: string) =>
      await rest(publicUrl, path, body, { origin: publicUrl, ...(token !== undefined && bearer(token)) })
    const nonce = async (wallet: TestWallet) => proofOf(wallet, (await call('/wallet/nonce', {})).json)
    const signIn = async (wallet: TestWallet) => await call('/wallet/verify', await nonce(wallet))
    const isSignedIn = async (token: string) => (await call('/session', undefined, token)).status === 200
    const [person, other, thief] = [makeWallet(), makeWallet(), makeWallet()]
    const { token, session } = (await signIn(person)).json
    const kept = (await signIn(other)).json
    expect((await signIn(thief)).status).toBe(200)

    // 8: metrics and audit events.
    const scraped = await Promise.all(metricsPorts.map((port) => curl(`http://127.0.0.1:${port}/metrics`)))
    for (const text of scraped) expect(text).toMatch(/^countersign_ready 1$/m)
    const audited = instances
      .flatMap((instance) => instance.output().split('\n'))
      .filter((line) => line.includes('"audit"'))
    expect(audited.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ type: 'sign_in.succeeded', userId: session.userId, sessionId: session.id }),
    )

    // 9: a dump, and what happened after it.
    const recorded = await nonce(person)
    await type(dump)
    expect((await call('/wallet/verify', recorded)).status).toBe(200)
    expect((await call('/sign-out', {}, token)).status).toBe(200)
    const block = `countersign admin block "nimiq:${thief.publicKeyHex}"`
    await type(block)
    expect((await signIn(thief)).json.code).toBe('LOGIN_REFUSED')

    // A new release: one instance after the other.
    const statuses: number[] = []
    let checking = true
    const checks = (async () => {
      while (checking) {
        statuses.push((await call('/session', undefined, kept.token)).status)
        await sleep(50)
      }
    })()
    for (const index of [0, 1] as const) {
      await instances[index]!.interrupt('SIGTERM')
      instances[index] = await start(index)
      await curl(`http://127.0.0.1:${applicationPorts[index]}/readyz`)
    }
    checking = false
    await checks
    expect(statuses.length).toBeGreaterThan(10)
    expect(statuses.filter((status) => status !== 200)).toEqual([])

    // The database is lost.
    await Promise.all(instances.map((instance) => instance.interrupt('SIGTERM')))
    await server.psql('DROP SCHEMA countersign CASCADE', 'countersign')
    expect(await type(restore)).toContain('all sessions have ended')
    instances = await Promise.all([start(0), start(1)])
    expect((await call('/wallet/verify', recorded)).json.code).toBe('NONCE_NOT_FOUND')
    expect([await isSignedIn(token), await isSignedIn(kept.token)]).toEqual([false, false])
    expect((await signIn(person)).json.session.userId).toBe(session.userId)
    // The block was made after the dump.
    expect((await signIn(thief)).status).toBe(200)
    await type(block)
    expect((await signIn(thief)).json.code).toBe('LOGIN_REFUSED')
    expect((await doctor()).filter((line) => !line.startsWith('ok '))).toEqual([])
  },
  300_000,
)
