import { once } from 'node:events'
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Countersign, CountersignError, createCountersign } from '../../../src/index.ts'
import type { StoreOptions } from '../../../src/store/implementation.ts'
import { StoreOpenError } from '../../../src/store/implementation.ts'
import { openStore } from '../../../src/store/open.ts'
import { slotOf } from '../../../src/store/redis/cluster.ts'
import type { RedisTls } from '../../../src/store/redis/tls.ts'
import type { Store } from '../../../src/store/store.ts'
import { Authority, type Certificate } from '../../support/certificates.ts'
import { keptLog } from '../../support/log-lines.ts'
import { hasPart } from '../../support/optional.ts'
import { freePort, killServers, RedisServer, redisCli, said, spawnRedis } from '../../support/redis-server.ts'
import { rest } from '../../support/rest.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { folderOfFile, temporaryFolder } from '../../support/temporary-folder.ts'
import { healed } from '../healed.ts'

const hasServer = hasPart('redis-server') && hasPart('redis-cli')
const hasOpenssl = hasPart('openssl')
afterAll(killServers)

const patience = { timeout: 30_000 }

/** Lets a server load its data slowly when it starts, and answer while it does. */
const slowLoading = '--key-load-delay 50000 --loading-process-events-interval-bytes 1024 --rdbcompression no'.split(' ')

/** Lets a test break the file that a server saves to. */
const breakableDisk = ['--enable-protected-configs', 'yes']

/** Fills a database so that loading it takes ten seconds, unless it is made to be faster. */
const fill = ['EVAL', "for i = 1, 200 do redis.call('SET', 'k' .. i, string.rep('x', 2000)) end", '0']

describe.skipIf(!hasServer)('a service with Redis', () => {
  let server: RedisServer
  let service: Countersign
  let url: string
  const log = keptLog()

  beforeAll(async () => {
    // Beside the default user, who breaks things and repairs them.
    const user = ['--user', 'signer', 'on', '>s3cret', '~countersign:*', '&countersign:*', '+@all']
    server = await RedisServer.start(...slowLoading, ...breakableDisk, ...user)
    service = await createCountersign({
      store: `redis://signer:s3cret@127.0.0.1:${server.port}`,
      secret: 'a secret for tests and for nothing else',
      port: 0,
      host: '127.0.0.1',
      rateLimit: false,
      logger: log.logger,
    })
    url = `http://localhost:${await service.listen()}`
  })
  afterAll(async () => {
    await service.close(500)
    await server[Symbol.asyncDispose]()
  })

  const acl = (...rules: string[]) => server.cli('ACL', 'SETUSER', 'signer', ...rules)
  const set = (...settings: string[]) => server.cli('CONFIG', 'SET', ...settings)
  const disconnect = () => server.cli('CLIENT', 'KILL', 'TYPE', 'normal')

  interface Fault {
    readonly what: string
    readonly logged: RegExp
    breakDown(): Promise<unknown>
    repair(): Promise<unknown>
  }

  const faults: readonly Fault[] = [
    {
      what: 'is full',
      logged: /^OOM/,
      breakDown: () => set('maxmemory', '1'),
      repair: () => set('maxmemory', '0'),
    },
    {
      what: 'cannot save to its disk',
      logged: /^MISCONF/,
      async breakDown() {
        await mkdir(join(server.folder, 'a-folder'), { recursive: true })
        await set('dbfilename', 'a-folder', 'save', '3600 1')
        await server.cli('BGSAVE')
      },
      async repair() {
        await set('dbfilename', 'dump.rdb', 'save', '')
      },
    },
    {
      what: 'lacks a replica that it must have',
      logged: /^NOREPLICAS/,
      breakDown: () => set('min-replicas-to-write', '1'),
      repair: () => set('min-replicas-to-write', '0'),
    },
    {
      what: 'became a replica',
      logged: /^READONLY|is a slave|is a replica/,
      breakDown: async () => server.cli('REPLICAOF', '127.0.0.1', String(await freePort())),
      repair: () => server.cli('REPLICAOF', 'NO', 'ONE'),
    },
    {
      what: 'is busy with a script',
      logged: /^BUSY/,
      async breakDown() {
        await set('busy-reply-threshold', '50')
        server.cli('EVAL', 'while true do end', '0').catch(() => undefined)
        await expect.poll(() => server.cli('PING').catch(String), patience).toMatch(/BUSY/)
      },
      repair: () => server.cli('SCRIPT', 'KILL'),
    },
    {
      what: 'is loading its data',
      logged: /^LOADING/,
      async breakDown() {
        await server.cli(...fill)
        await server.cli('SAVE')
        await server.kill()
        // Resolves only when everything is loaded.
        void server.start()
        await expect.poll(() => server.cli('PING').catch(String), patience).toMatch(/LOADING/)
      },
      async repair() {
        await set('key-load-delay', '0')
        await expect.poll(() => server.cli('FLUSHALL').catch(String), patience).toBe('OK')
      },
    },
    {
      what: 'has another password since',
      logged: /^WRONGPASS/,
      async breakDown() {
        await acl('resetpass', '>another')
        await disconnect()
      },
      repair: () => acl('resetpass', '>s3cret'),
    },
    {
      what: 'no longer permits a command',
      logged: /^NOPERM.* 'set' command/,
      breakDown: () => acl('-set'),
      repair: () => acl('+set'),
    },
    {
      what: 'no longer permits the keys',
      logged: /^NOPERM.* key/,
      breakDown: () => acl('resetkeys', '~other:*'),
      repair: () => acl('~countersign:*'),
    },
  ]

  const nonce = async () => (await rest(url, '/wallet/nonce', {})).status
  const readiness = async () => (await fetch(`${url}/readyz`)).status
  const causes = () => log.lines.map(({ fields }) => String(fields.cause))

  it.each(faults)('answers 503 if its server $what, says why in its log, and heals', async (fault) => {
    expect(await nonce()).toBe(200)
    const before = log.lines.length
    await fault.breakDown()
    await expect.poll(nonce, patience).toBe(503)
    const causesSince = async () => {
      await nonce()
      return causes().slice(before)
    }
    await expect.poll(causesSince, patience).toContainEqual(expect.stringMatching(fault.logged))
    expect(await rest(url, '/wallet/nonce', {})).toMatchObject({ status: 503, json: { code: 'STORE_UNAVAILABLE' } })
    expect(await readiness()).toBe(503)
    expect(await readiness()).toBe(503)
    await fault.repair()
    await expect.poll(readiness, patience).toBe(200)
    await expect.poll(nonce, patience).toBe(200)
    expect(await readiness()).toBe(200)
  })

  it('has nothing secret in its log, nor any key', () => {
    expect(log.lines).not.toEqual([])
    expect(JSON.stringify(log.lines)).not.toMatch(/s3cret|countersign:/)
  })
})

describe.skipIf(!hasServer)('a Redis store that is asked whether it is well', () => {
  it('writes only until it has been seen to work again, and leaves nothing behind', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    expect(await server.cli('DBSIZE')).toBe('0')
    const writes = async () => /cmdstat_set:calls=(\d+)/.exec(await server.cli('INFO', 'commandstats'))?.[1] ?? '0'
    await server.cli('CONFIG', 'RESETSTAT')
    for (let i = 0; i < 3; i++) await store.ping()
    expect(await writes()).toBe('0')

    await server.cli('CONFIG', 'SET', 'maxmemory', '1')
    await expect(store.create('k', 'a', 'forever')).rejects.toMatchObject(unavailable)
    for (let i = 0; i < 3; i++) await expect(store.ping()).rejects.toMatchObject(unavailable)
    await server.cli('CONFIG', 'SET', 'maxmemory', '0')
    await store.ping()
    expect(await server.cli('DBSIZE')).toBe('0')
    await server.cli('CONFIG', 'RESETSTAT')
    for (let i = 0; i < 3; i++) await store.ping()
    expect(await writes()).toBe('0')
  })

  it('is not well while reads work and a single kind of write does not', async () => {
    await using server = await RedisServer.start()
    await server.cli('ACL', 'SETUSER', 'signer', 'on', '>s3cret', '~*', '&*', '+@all')
    await using store = await opened(`redis://signer:s3cret@127.0.0.1:${server.port}`)
    await server.cli('ACL', 'SETUSER', 'signer', '-getdel')
    await expect(store.take('k')).rejects.toMatchObject(unavailable)
    await store.create('k', 'a', 'forever')
    await expect(store.ping()).rejects.toMatchObject(unavailable)
    await server.cli('ACL', 'SETUSER', 'signer', '+getdel')
    await store.ping()
  })
})

describe.skipIf(!hasServer)('a Redis store', () => {
  it('keeps its connection to a server that refuses a PING, because it may still read there', async () => {
    await using server = await RedisServer.start(...breakableDisk)
    await using store = await opened(server.url)
    await store.create('k', 'a', 'forever')
    const before = await connectionOf(server)
    await breakDisk(server)
    await server.cli('CONFIG', 'RESETSTAT')
    const refused = async () => /errorstat_MISCONF:count=(\d+)/.exec(await server.cli('INFO', 'errorstats'))?.[1] ?? 0
    await expect.poll(async () => Number(await refused()), patience).toBeGreaterThan(1)
    expect(await store.get('k')).toEqual({ value: 'a', version: 1 })
    expect(await connectionOf(server)).toBe(before)
    expect(before).toMatch(/^id=\d+$/)
  })

  it('keeps its connection to a server that answers soon after its time, even if all that it does is refuse', async () => {
    await using server = await RedisServer.start(...breakableDisk)
    await using store = await opened(server.url)
    await store.create('k', 'a', 'forever')
    const before = await connectionOf(server)
    await breakDisk(server)
    server.freeze()
    await sleep(100)
    const late = await causeOf(store.create('another', 'a', 'forever'))
    server.thaw()
    expect(late).toBe('no answer within 2500 ms')
    // Longer than the connection would have lasted if the server had said nothing.
    await sleep(1000)
    expect(await causeOf(store.create('another', 'a', 'forever'))).toMatch(/^MISCONF/)
    expect(await store.get('k')).toEqual({ value: 'a', version: 1 })
    expect(await connectionOf(server)).toBe(before)
    expect(before).toMatch(/^id=\d+$/)
  })

  it('leaves a server that refuses to read because it has lost its master', async () => {
    await using server = await RedisServer.start('--replica-serve-stale-data', 'no')
    await using store = await opened(server.url)
    await server.cli('REPLICAOF', '127.0.0.1', String(await freePort()))
    expect(await causeOf(store.get('k'))).toMatch(/^MASTERDOWN/)
    await expect.poll(() => causeOf(store.get('k')), patience).toMatch(/takes no writes: name its master/)
    await server.cli('REPLICAOF', 'NO', 'ONE')
    await healed(store)
  })

  it('is unavailable while its server has a password that it does not know, and says so', async () => {
    await using server = await RedisServer.start()
    await using store = await opened(server.url)
    await server.cli('CONFIG', 'SET', 'requirepass', 'another')
    await server.cli('-a', 'another', '--no-auth-warning', 'CLIENT', 'KILL', 'TYPE', 'normal')
    await expect.poll(() => causeOf(store.get('k')), patience).toMatch(/^NOAUTH/)
    await server.cli('-a', 'another', '--no-auth-warning', 'CONFIG', 'SET', 'requirepass', '')
    await healed(store)
  })

  it('says why a watch cannot begin, not only that its time is over', async () => {
    await using server = await RedisServer.start()
    await server.cli('ACL', 'SETUSER', 'signer', 'on', '>s3cret', '~*', '&*', '+@all')
    await using store = await opened(`redis://signer:s3cret@127.0.0.1:${server.port}`)
    await server.cli('ACL', 'SETUSER', 'signer', 'resetchannels')
    expect(await causeOf(store.watch('k', () => undefined))).toMatch(/^NOPERM.* channel/)
  })

  it('tells of a command that is gone, and not of the key and value that it was to be used with', async () => {
    await using server = await RedisServer.start()
    await using other = await RedisServer.start('--rename-command', 'SET', '')
    const proxy = await startTcpProxy(server.port)
    await using store = await opened(`redis://127.0.0.1:${proxy.port}`)
    proxy.targetPort = other.port
    proxy.cut()
    await healed(store, () => store.get('k'))
    expect(await causeOf(store.create('a-key', 'a-value', 'forever'))).toBe("ERR unknown command 'SET'")
  })
})

describe.skipIf(!hasServer)('what Redis does when its memory is full', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const user = (...rules: string[]) =>
    server.cli('ACL', 'SETUSER', 'signer', 'reset', 'on', '>s3cret', '~*', '&*', ...rules)

  it.each([
    ['noeviction', []],
    ['allkeys-lru', [/maxmemory-policy is allkeys-lru: set it to noeviction/]],
    ['volatile-ttl', [/drop sessions.*maxmemory-policy is volatile-ttl: set it to noeviction/]],
  ])('is told at the start if it can drop sessions: %s', async (policy, expected) => {
    await server.cli('CONFIG', 'SET', 'maxmemory-policy', policy)
    for (const permissions of [['+@all'], ['+@all', '-config'], ['+@all', '-info']]) {
      await user(...permissions)
      expect(await warningsOfService()).toEqual(expected.map((line) => expect.stringMatching(line)))
    }
  })

  it('is asked for at the start if Redis does not tell it', async () => {
    await user('+@all', '-info', '-config')
    expect(await warningsOfService()).toEqual([expect.stringMatching(/permit INFO, or make sure .* is noeviction/)])
  })

  async function warningsOfService(): Promise<string[]> {
    const { logger, lines } = keptLog()
    const store = `redis://signer:s3cret@127.0.0.1:${server.port}`
    const service = await createCountersign({ store, secret: 'a secret for tests and for nothing else', logger })
    await service.close(0)
    return lines.map(({ level, text }) => `${level} ${text}`)
  }
})

describe.skipIf(!hasServer)('opening a Redis store refuses, in one line that says what to do,', () => {
  let server: RedisServer
  beforeEach(() => server?.cli('CONFIG', 'SET', 'maxmemory', '0', 'min-replicas-to-write', '0'))
  beforeAll(async () => {
    server = await RedisServer.start(...slowLoading)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const at = (credentials = '') => `redis://${credentials}127.0.0.1:${server.port}`
  const user = (...rules: string[]) => server.cli('ACL', 'SETUSER', 'signer', 'reset', 'on', '>s3cret', ...rules)

  it('a missing or a wrong password', async () => {
    await using locked = await RedisServer.start('--requirepass', 'right')
    await refused(locked.url, /asks for a password \(NOAUTH\)\. Write the password into COUNTERSIGN_STORE/)
    await refused(`redis://:s3cret@127.0.0.1:${locked.port}`, /\(WRONGPASS\)\. Correct them in COUNTERSIGN_STORE/)
    await refused(at('nobody:s3cret@'), /\(WRONGPASS\)\. Correct them in COUNTERSIGN_STORE/)
  })

  it.each([
    [['~*', '&*', '+@all', '-getdel'], /not permitted to run GETDEL \(NOPERM\)\. .*docs\/operations\.md/],
    [['~*', '&*', '+@all', '-ssubscribe'], /not permitted to run SSUBSCRIBE \(NOPERM\)\. .*docs\/operations\.md/],
    [['~*', '&*', '+@all', '-zadd'], /not permitted to run a command that Countersign's scripts need .*operations\.md/],
    [['~other:*', '&*', '+@all'], /not permitted to use the keys .*operations\.md/],
    [['~*', '+@all'], /not permitted to use the channels .*operations\.md/],
    [[], /not permitted to run EVALSHA .*operations\.md/],
  ])('a user with no more permissions than %j', async (permissions, problem) => {
    await user(...permissions)
    await refused(at('signer:s3cret@'), problem)
  })

  it('a server that is full', async () => {
    await server.cli('CONFIG', 'SET', 'maxmemory', '1')
    await refused(at(), /no memory left for writes \(OOM\)\. Raise its maxmemory/)
  })

  it('a server that has too few replicas', async () => {
    await server.cli('CONFIG', 'SET', 'min-replicas-to-write', '1')
    await refused(at(), /too few replicas \(NOREPLICAS\)\. Start its replicas/)
  })

  it('a replica', async () => {
    await using replica = await RedisServer.start('--replicaof', '127.0.0.1', String(server.port))
    await refused(replica.url, /is a (slave|replica) and takes no writes: name its master/)
  })

  it('a server that is busy with a script', async () => {
    await server.cli('CONFIG', 'SET', 'busy-reply-threshold', '50')
    server.cli('EVAL', 'while true do end', '0').catch(() => undefined)
    await expect.poll(() => server.cli('PING').catch(String), patience).toMatch(/BUSY/)
    await refused(at(), /busy with a script \(BUSY\)\. End that with SCRIPT KILL/)
    await server.cli('SCRIPT', 'KILL')
  })

  it('a server that is loading its data', async () => {
    await server.cli(...fill)
    await server.cli('SAVE')
    await server.kill()
    const loaded = server.start()
    await expect.poll(() => server.cli('PING').catch(String), patience).toMatch(/LOADING/)
    await refused(at(), /still loading its data \(LOADING\)\. Start again when it has finished/)
    await server.cli('CONFIG', 'SET', 'key-load-delay', '0')
    await loaded
    await server.cli('FLUSHALL')
  })

  it('a server that is older than HELLO, or lacks another command', async () => {
    await using old = await RedisServer.start('--rename-command', 'HELLO', '')
    await refused(old.url, /does not know HELLO, so it is older than Redis 7\. Upgrade it/)
    await using cut = await RedisServer.start('--rename-command', 'GETDEL', '')
    await refused(cut.url, /does not have the command GETDEL\. Take back its rename-command/)
  })

  it('a database that the server does not have', async () => {
    await refused(`${at()}/99`, /does not have a database of this number\. Correct the number/)
  })

  it('a server that is not part of a cluster', async () => {
    await refused(`redis+cluster://127.0.0.1:${server.port}`, /is not part of a cluster: use redis:\/\//)
  })

  it('a node of a cluster without redis+cluster://, and a sentinel', async () => {
    await using node = await RedisServer.start('--cluster-enabled', 'yes')
    await refused(node.url, /is part of a cluster: use redis\+cluster:\/\//)
    await refused(`redis+cluster://127.0.0.1:${node.port}`, /the cluster has no slots yet/)
    const folder = temporaryFolder()
    const [config, port] = [join(folder, 'sentinel.conf'), await freePort()]
    await writeFile(config, `bind 127.0.0.1\nport ${port}\ndir ${folder}\n`)
    await said(spawnRedis([config, '--sentinel']), 'Sentinel ID is')
    await refused(`redis://127.0.0.1:${port}`, /is a sentinel, which stores nothing: name a Redis server/)
  })

  it('a host that is not known, and one where nothing listens', async () => {
    // An empty label needs no name server to be refused.
    await refused('redis://:s3cret@nosuch..invalid', /host name is not known .*Correct the host/)
    await refused(`redis://:s3cret@127.0.0.1:${await freePort()}`, /ECONNREFUSED.* Start it or correct/)
  })

  it('TLS for a port without it', async () => {
    await refused(
      at(':s3cret@').replace('redis:', 'rediss:'),
      /If the port does not use TLS, write redis in place of rediss/,
    )
    // Other servers than Redis answer.
    const talkative = createServer((socket) => socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n'))
    await once(talkative.listen(0, '127.0.0.1'), 'listening')
    const { port } = talkative.address() as AddressInfo
    await refused(`rediss://127.0.0.1:${port}`, /does not use TLS on this port\. Write redis in place of rediss/)
    talkative.close()
  })

  it('nothing that the ACL rule of docs/operations.md permits', async () => {
    const page = await readFile(new URL('../../../docs/operations.md', import.meta.url), 'utf8')
    const [, rules = ''] = /^ACL SETUSER countersign on >\S+ (.+)$/m.exec(page) ?? []
    await user(...rules.split(' '))
    const { logger, lines } = keptLog()
    await using store = await opened(at('signer:s3cret@'), { log: logger })
    await store.ping()
    const unwatch = await store.watch('k', () => undefined)
    unwatch()
    // So many that those beyond the bound are dropped.
    for (const member of ['a', 'b', 'c', 'd']) await store.addMember('set', member, 'forever', 1)
    expect(await store.members('set')).toHaveLength(2)
    expect(lines).toEqual([])
  })
})

describe.skipIf(!hasServer || !hasOpenssl)('Redis with TLS', () => {
  let folder: string
  let authority: Authority
  let certificate: Certificate
  let client: Certificate
  let stranger: Certificate
  let server: RedisServer
  let url: string
  let tls: { readonly ca: string; readonly cert: string; readonly key: string; readonly serverName: string }

  beforeAll(async () => {
    folder = folderOfFile()
    authority = await Authority.create(folder, 'authority')
    const other = await Authority.create(folder, 'other')
    certificate = await authority.issue('redis.test')
    client = await authority.issue('countersign.test')
    stranger = await other.issue('countersign.test')
    tls = { ca: authority.cert, cert: client.cert, key: client.key, serverName: 'redis.test' }
    const port = await freePort()
    server = await RedisServer.start(...withTls(port))
    url = `rediss://127.0.0.1:${port}`
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
  })

  const withTls = (port: number) => [
    ...['--tls-port', String(port), '--tls-auth-clients', 'yes', '--tls-ca-cert-file', authority.cert],
    ...['--tls-cert-file', certificate.cert, '--tls-key-file', certificate.key],
  ]

  it('is reached with its authority, its name and a client certificate', async () => {
    await using store = await opened(url, { redisTls: tls })
    await store.create('k', 'a', 'forever')
    const unwatch = await store.watch('k', () => undefined)
    unwatch()
    expect(await server.cli('GET', 'countersign:k')).toBe('1=a')
  })

  it('is reached by a service with the settings of these names', async () => {
    const service = await createCountersign({
      store: url,
      secret: 'a secret for tests and for nothing else',
      redis: { tlsCa: tls.ca, tlsCert: tls.cert, tlsKey: tls.key, tlsServerName: tls.serverName },
    })
    expect(service.description.store).toMatch(/over TLS/)
    await service.close(0)
  })

  it('is refused without them, in one line that names the setting', async () => {
    await refused(url, /not from an authority that is trusted here\. Set COUNTERSIGN_REDIS_TLS_CA/)
    await refused(url, /for another host name\. .*COUNTERSIGN_REDIS_TLS_SERVER_NAME/, { ca: tls.ca })
    const named = { ca: tls.ca, serverName: tls.serverName }
    await refused(url, /asks for a client certificate\. Set COUNTERSIGN_REDIS_TLS_CERT/, named)
    await refused(url, /does not accept the client certificate\. Set COUNTERSIGN_REDIS_TLS_CERT/, {
      ...named,
      ...stranger,
    })
    await refused(url.replace('rediss', 'redis'), /closed the connection at once\. If its port uses TLS, write rediss/)
  })

  it.each([
    [
      'a file that is missing',
      () => ({ ca: join(folder, 'missing') }),
      /^redis\.tlsCa \(COUNTERSIGN_REDIS_TLS_CA\).*no such file/,
    ],
    ['a folder', () => ({ ca: folder }), /^redis\.tlsCa .* must be a file that can be read/],
    ['an authority that is not a certificate', () => ({ ca: client.key }), /^redis\.tlsCa .*certificate in PEM format/],
    [
      'a certificate without its key',
      () => ({ cert: client.cert }),
      /^redis\.tlsCert .* and redis\.tlsKey .* set together/,
    ],
    [
      'a key without its certificate',
      () => ({ key: client.key }),
      /^redis\.tlsCert .* and redis\.tlsKey .* set together/,
    ],
    [
      'a certificate that is a key',
      () => ({ cert: client.key, key: client.key }),
      /^redis\.tlsCert .*certificate in PEM/,
    ],
    ['a key that is a certificate', () => ({ cert: client.cert, key: client.cert }), /^redis\.tlsKey .*private key of/],
    [
      'the key of another',
      () => ({ cert: client.cert, key: stranger.key }),
      /^redis\.tlsKey .*private key of redis\.tlsCert/,
    ],
  ])('does not begin with %s', async (_, redisTls: () => RedisTls, problem) => {
    const failure: unknown = await openStore(url, { redisTls: redisTls() }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(TypeError)
    expect((failure as Error).message).toMatch(problem)
    expect((failure as Error).message).not.toContain('\n')
  })

  it.each(['redis://127.0.0.1', 'redis+cluster://127.0.0.1', 'sqlite::memory:'])(
    'is not what %s means, so that its settings stop the start',
    async (store) => {
      const failure: unknown = await openStore(store, { redisTls: { ca: tls.ca } }).catch((error: unknown) => error)
      expect(failure).toBeInstanceOf(TypeError)
      expect((failure as Error).message).toMatch(/COUNTERSIGN_REDIS_TLS_.* rediss/)
    },
  )

  it('is reached with the files as they are by then, so that a renewed certificate needs no restart', async () => {
    const current = { cert: join(folder, 'current.pem'), key: join(folder, 'current.key') }
    const renew = async ({ cert, key }: Certificate) => {
      await copyFile(cert, current.cert)
      await copyFile(key, current.key)
    }
    await renew(client)
    await using store = await opened(url, { redisTls: { ...tls, ...current } })
    await renew(stranger)
    await server.cli('CLIENT', 'KILL', 'TYPE', 'normal')
    await expect.poll(() => causeOf(store.ping()), patience).toMatch(/unknown ca/i)
    await renew(client)
    await healed(store)
  })

  it('is reached as a cluster', async () => {
    const port = await freePort()
    const cluster = ['--cluster-enabled', 'yes', '--tls-cluster', 'yes']
    await using node = await RedisServer.start(...withTls(port), ...cluster)
    await node.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await expect.poll(() => node.cli('CLUSTER', 'INFO'), patience).toContain('cluster_state:ok')
    await using clustered = await opened(`rediss+cluster://127.0.0.1:${port}`, { redisTls: tls })
    await clustered.create('k', 'a', 'forever')
    expect(await node.cli('GET', 'countersign:k')).toBe('1=a')
  })
})

describe.skipIf(!hasServer)('a Redis cluster', () => {
  const nodes: RedisServer[] = []
  const all = (...command: string[]) => Promise.all(nodes.map((node) => node.cli(...command)))

  beforeAll(async () => {
    const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', '--cluster-require-full-coverage', 'no']
    nodes.push(...(await Promise.all([1, 2, 3].map(() => RedisServer.start(...args)))))
    const serving = nodes.map((node) => node.logs('Cluster state changed: ok'))
    await redisCli('--cluster', 'create', ...nodes.map(({ port }) => `127.0.0.1:${port}`), '--cluster-yes')
    await Promise.all(serving)
  })
  afterAll(() => Promise.all(nodes.map((node) => node[Symbol.asyncDispose]())))

  /** Waits until every node tells of the owners of slots by these addresses, and by no others. */
  async function allSay(addresses: readonly string[]): Promise<void> {
    const told = async () =>
      (await all('CLUSTER', 'SLOTS')).map((answer) => {
        const lines = answer.split('\n')
        const owners = lines.flatMap((line, i) =>
          /^[0-9a-f]{40}$/.test(line) ? `${lines[i - 2]}:${lines[i - 1]}` : [],
        )
        return [...new Set(owners)].sort()
      })
    await expect.poll(told, patience).toEqual(nodes.map(() => addresses.toSorted()))
  }

  /** Moves the slot of a key, which must be empty, to another node. */
  async function moveSlotOf(key: string): Promise<void> {
    const slot = slotOf(`countersign:${key}`)
    const ids = await all('CLUSTER', 'MYID')
    const table = (await nodes[0]?.cli('CLUSTER', 'NODES')) ?? ''
    const owner = ids.findIndex((id) => owns(table, id, slot))
    const target = (owner + 1) % ids.length
    // With this, the new owner takes a higher epoch, so that no gossip from before moves the slot back.
    await nodes[target]?.cli('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', String(ids[owner]))
    for (const i of [target, owner, (owner + 2) % ids.length]) {
      await nodes[i]?.cli('CLUSTER', 'SETSLOT', String(slot), 'NODE', String(ids[target]))
    }
  }

  function owns(nodeTable: string, id: string, slot: number): boolean {
    const [, ranges = ''] = new RegExp(`^${id} .* connected(.*)$`, 'm').exec(nodeTable) ?? []
    return [...ranges.matchAll(/ (\d+)(?:-(\d+))?/g)].some(
      ([, from, to]) => Number(from) <= slot && slot <= Number(to ?? from),
    )
  }

  /** Uses every node: as it is found, as another one names it, and after all slots have been asked for again. */
  async function visitAllNodes(url: string): Promise<void> {
    await using store = await opened(url)
    for (let i = 0; i < 6; i++) {
      const key = `moved:${i}`
      await moveSlotOf(key)
      expect(await store.create(key, 'a', { ttlMs: 60_000 })).toBe(true)
      expect(await store.take(key)).toBe('a')
    }
    for (const round of [1, 2]) {
      for (let i = 0; i < 8; i++) {
        const key = `${round}:${i}`
        await healed(store, () => store.create(key, 'a', { ttlMs: 60_000 }))
        const unwatch = await healed(store, () => store.watch(key, () => undefined))
        unwatch()
        expect(await store.take(key)).toBe('a')
      }
      await all('CLIENT', 'KILL', 'TYPE', 'normal')
    }
  }

  it('is used at the host that was asked if its nodes tell no host', async () => {
    await all('CONFIG', 'SET', 'cluster-preferred-endpoint-type', 'unknown-endpoint')
    await visitAllNodes(`redis+cluster://localhost:${nodes[0]?.port}`)
  })

  it('is used by addresses while its nodes have no host name that they prefer', async () => {
    await all('CONFIG', 'SET', 'cluster-preferred-endpoint-type', 'hostname')
    await visitAllNodes(`redis+cluster://127.0.0.1:${nodes[0]?.port}`)
  })

  it('is used by the host names that its nodes announce', async () => {
    await all('CONFIG', 'SET', 'cluster-announce-hostname', 'localhost')
    await allSay(nodes.map(({ port }) => `localhost:${port}`))
    await visitAllNodes(`redis+cluster://127.0.0.1:${nodes[0]?.port}`)
  })

  it('is used at the ports that its nodes announce, such as those of a router', async () => {
    await all('CONFIG', 'SET', 'cluster-preferred-endpoint-type', 'ip')
    const proxies = await Promise.all(nodes.map(({ port }) => startTcpProxy(port)))
    for (const [i, node] of nodes.entries()) {
      await node.cli('CONFIG', 'SET', 'cluster-announce-port', String(proxies[i]?.port))
      await node.cli('CONFIG', 'SET', 'cluster-announce-bus-port', String(node.port + 10_000))
    }
    await allSay(proxies.map(({ port }) => `127.0.0.1:${port}`))
    await visitAllNodes(`redis+cluster://127.0.0.1:${nodes[0]?.port}`)
    await using store = await opened(`redis+cluster://127.0.0.1:${nodes[0]?.port}`)
    // All three are reached through their proxies: nothing passes a proxy after this.
    const keys = Array.from({ length: 40 }, (_, i) => `k${i}`)
    const passed = Promise.all(proxies.map((proxy) => proxy.stallAfter('GET')))
    const answers = await Promise.allSettled(keys.map((key) => store.get(key)))
    await passed
    expect(answers.some(({ status }) => status === 'rejected')).toBe(true)
    await all('CONFIG', 'SET', 'cluster-announce-port', '0')
    await allSay(nodes.map(({ port }) => `127.0.0.1:${port}`))
  })

  it('may have a server that is full: the others are used, and the log says it, as of policies that drop data', async () => {
    const [, full] = nodes
    await full?.cli('CONFIG', 'SET', 'maxmemory', '1', 'maxmemory-policy', 'volatile-lru')
    const { logger, lines } = keptLog()
    await using store = await opened(`redis+cluster://127.0.0.1:${nodes[0]?.port}`, { log: logger })
    expect(store.shared).toBe(true)
    expect(lines.map(({ level, text }) => `${level} ${text}`)).toEqual([
      expect.stringMatching(/^warn a server of the Redis cluster cannot be used: .*\(OOM\)\. Raise its maxmemory/),
      expect.stringMatching(/^warn Redis can drop sessions.* volatile-lru: set it to noeviction/),
    ])
    await all('CONFIG', 'SET', 'maxmemory', '1')
    await refused(`redis+cluster://127.0.0.1:${nodes[0]?.port}`, /no memory left for writes \(OOM\)/)
    await all('CONFIG', 'SET', 'maxmemory', '0')
  })
})

const unavailable = { reason: 'STORE_UNAVAILABLE', retryAfterMs: 1000 }

async function opened(url: string, options: StoreOptions = {}): Promise<Store & AsyncDisposable> {
  const store = await openStore(url, options)
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() })
}

/** The connection of a store to a server. */
async function connectionOf(server: RedisServer): Promise<string | undefined> {
  return /^id=\d+.* name=countersign /m.exec(await server.cli('CLIENT', 'LIST'))?.[0].split(' ')[0]
}

/** Makes a server that was started with {@link breakableDisk} refuse writes and PINGs. */
async function breakDisk(server: RedisServer): Promise<void> {
  await mkdir(join(server.folder, 'a-folder'))
  await server.cli('CONFIG', 'SET', 'dbfilename', 'a-folder', 'save', '3600 1')
  await server.cli('BGSAVE')
  await expect.poll(() => server.cli('PING').catch(String), patience).toMatch(/MISCONF/)
}

/** Why a call of a store failed. */
async function causeOf(call: Promise<unknown>): Promise<string | undefined> {
  const failure: unknown = await call.catch((error: unknown) => error)
  if (!(failure instanceof CountersignError)) return undefined
  expect(failure).toMatchObject(unavailable)
  return failure.cause instanceof Error ? failure.cause.message : undefined
}

async function refused(url: string, problem: RegExp, redisTls?: RedisTls): Promise<void> {
  const opening = redisTls === undefined ? openStore(url) : openStore(url, { redisTls })
  const failure: unknown = await opening.then((store) => store.close()).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(StoreOpenError)
  const { message } = failure as StoreOpenError
  expect(message).toMatch(problem)
  expect(message).toMatch(/^Cannot open the store, [^\n]*COUNTERSIGN_STORE[^\n]*\.$/)
  expect(message).not.toContain('s3cret')
}
