import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { describeTarget, parseRedisUrl } from '../../src/store/redis/url.ts'
import { run } from '../support/command.ts'
import { folderOfFile } from '../support/temporary-folder.ts'

const folder = folderOfFile()

describe('openStore', () => {
  it('opens memory and files', async () => {
    const memory = await openStore('sqlite::memory:')
    expect(memory.description).toBe('SQLite in memory')
    await memory.close()
    const file = join(folder, 'a.db')
    for (const url of [`sqlite:${file}`, `sqlite://${file}`]) {
      const store = await openStore(url)
      await store.ping()
      await store.close()
    }
  })

  it.each([
    '',
    'sqlite:',
    'sqlite://file.db',
    'mysql://user:s3cret@host/db',
    './countersign.db',
    'REDIS://:s3cret@host',
    'redis+other',
  ])('takes %j for a mistake and names the forms it knows, and nothing of the URL', async (url) => {
    const error = await openStore(url).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(TypeError)
    expect(String(error)).toMatch(/sqlite:\.\/file\.db, sqlite::memory:, redis:.*rediss:.*redis\+cluster:.*postgres:/)
    expect(String(error)).not.toMatch(/s3cret|\n/)
  })

  it.each(['sqlite:./a.db?mode=ro', 'sqlite::memory:?cache=shared', `sqlite://${folder}/b.db?`])(
    'refuses the query of %s, which would be a part of the name of a file',
    async (url) => {
      await expect(openStore(url)).rejects.toThrow(/^The URL of an SQLite store has a query, which has no effect: /)
    },
  )

  it('loads no Redis client for SQLite', async () => {
    const script = `
      import { createRequire } from 'node:module'
      import { openStore } from ${JSON.stringify(new URL('../../src/store/open.ts', import.meta.url).href)}
      const loaded = () => Object.keys(createRequire(import.meta.url).cache).filter((name) => name.includes('redis')).length
      await (await openStore('sqlite::memory:')).close()
      const before = loaded()
      await openStore('redis://127.0.0.1:1').catch(() => undefined)
      console.log(JSON.stringify([before, loaded() > 0]))`
    const file = createRequire(import.meta.url).resolve('../../package.json')
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], {
      cwd: join(file, '..'),
    })
    expect(JSON.parse(stdout)).toEqual([0, true])
  })

  it('says what to install for PostgreSQL where the package pg is missing, and needs it for no other store', async () => {
    const script = `
      import { registerHooks } from 'node:module'
      registerHooks({
        resolve(name, context, next) {
          if (name === 'pg') throw Object.assign(new Error('not installed'), { code: 'ERR_MODULE_NOT_FOUND' })
          return next(name, context)
        },
      })
      const { openStore } = await import(${JSON.stringify(import.meta.resolve('../../src/store/open.ts'))})
      await (await openStore('sqlite::memory:')).close()
      await openStore('postgres://user@host/database').catch((error) => console.log(error.name, error.message))`
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script])
    expect(stdout).toBe('TypeError A store in PostgreSQL needs the package pg: npm install pg@8\n')
  })
})

describe('a Redis URL', () => {
  it.each([
    ['redis://host', { kind: 'single', addresses: [{ host: 'host', port: 6379 }], tls: undefined, database: 0 }],
    ['rediss://host:1/5', { addresses: [{ host: 'host', port: 1 }], tls: {}, database: 5 }],
    ['redis://[::1]:7/', { addresses: [{ host: '::1', port: 7 }], database: 0 }],
    ['redis://u:p%40%3A@h', { username: 'u', password: 'p@:' }],
    ['redis://:p@q@h', { password: 'p@q' }],
    ['redis://:p:q@h', { username: undefined, password: 'p:q' }],
    ['redis://h', { username: undefined, password: undefined }],
    [
      'redis+cluster://u:p@h1:7000,h2,[::2]',
      {
        kind: 'cluster',
        addresses: [
          { host: 'h1', port: 7000 },
          { host: 'h2', port: 6379 },
          { host: '::2', port: 6379 },
        ],
        username: 'u',
      },
    ],
    ['rediss+cluster://h/0', { kind: 'cluster', tls: {} }],
  ])('%s is understood', (url, target) => {
    expect(parseRedisUrl(url)).toMatchObject(target)
  })

  it.each([
    ['redis://', /malformed/],
    ['redis:host', /malformed/],
    ['redis://:s3cret@h/1/2', /malformed database/],
    ['redis://:s3cret@h/x', /malformed database/],
    ['redis://:s3cret@h1,h2', /exactly one host/],
    ['redis://:s3cret@h:0', /host or port/],
    ['redis://:s3cret@h:65536', /host or port/],
    ['redis://:s3cret@h:1:2', /host or port/],
    ['redis://:s3cret%@h', /percent-encoding/],
    ['redis+cluster://:s3cret@h1,,h2', /host or port/],
    ['redis+cluster://:s3cret@h1/2', /cluster has only one/],
    [
      'redis+sentinel://:s3cret@h1,h2/main',
      /not supported, .*: use postgres:.*redis\+cluster:.*\(docs\/scaling\.md\)$/,
    ],
    ['rediss+sentinel://h1?sentinelPassword=s3cret', /not supported/],
    ['redis://s3cret@h', /has a user without a password/],
    ['redis://s3cret:@h', /has a user without a password/],
  ])('%s is a TypeError that does not repeat it', (url, problem) => {
    expect(() => parseRedisUrl(url)).toThrow(TypeError)
    expect(() => parseRedisUrl(url)).toThrow(problem)
    expect(() => parseRedisUrl(url)).not.toThrow(/s3cret/)
  })

  it.each(['db=2', 'ssl=true', 'password=s3cret', 's3cret', 'sentinelPassword=s3cret', 'db=2&db=3'])(
    'with the query %s, which other clients read, is a TypeError that does not repeat it',
    (query) => {
      for (const start of ['redis://h', 'rediss://u:p@h:1/2', 'redis+cluster://h1,h2', 'rediss+cluster://h/0']) {
        const read = () => parseRedisUrl(`${start}?${query}`)
        expect(read).toThrow(
          /^The Redis URL has a query, which has no effect \(the database is in the path, .*\): write it/,
        )
        expect(read).not.toThrow(/s3cret/)
      }
      expect(parseRedisUrl('redis://h/2?')).toMatchObject({ database: 2 })
    },
  )

  it('is described without its credentials', () => {
    const url = 'rediss+cluster://user:s3cret@[::1],h2:5'
    expect(describeTarget(parseRedisUrl(url))).toBe('Redis cluster at [::1]:6379, h2:5 over TLS')
    expect(describeTarget(parseRedisUrl('rediss://u:s3cret@h1/3'))).toBe('Redis at h1:6379 over TLS, database 3')
    expect(describeTarget(parseRedisUrl('redis+cluster://u:s3cret@h1,h2:5'))).toBe('Redis cluster at h1:6379, h2:5')
    expect(describeTarget(parseRedisUrl('redis://u:s3cret@h1'))).toBe('Redis at h1:6379')
  })
})
