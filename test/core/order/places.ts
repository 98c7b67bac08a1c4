import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { atFileEnd } from '../../support/file-end.ts'
import { redisUrl } from '../../support/stores.ts'

/** A place for a store whose contents can be looked at. */
interface Place {
  readonly name: string
  /** The address of a store that holds nothing else. */
  open(): Promise<string>
  /** All that the store holds. */
  dump(): Promise<string>
}

function inFile(): Place {
  let folder = ''
  return {
    name: 'SQLite in a file',
    async open() {
      const made = await mkdtemp(join(tmpdir(), 'countersign-orders-'))
      folder = made
      atFileEnd(() => rm(made, { recursive: true, force: true }))
      return `sqlite:${join(folder, 'orders.db')}`
    },
    async dump() {
      // The bytes, write-ahead log and freed pages included.
      const files = await readdir(folder)
      return (await Promise.all(files.map((file) => readFile(join(folder, file), 'latin1')))).join('\n')
    },
  }
}

function inRedis(address: () => Promise<string>): Place {
  return {
    name: 'Redis',
    open: address,
    async dump() {
      const client = await createClient({ url: await address() }).connect()
      const found: unknown[] = []
      for await (const keys of client.scanIterator()) {
        for (const key of keys) {
          const type = await client.type(key)
          if (type === 'string') found.push(key, await client.get(key))
          else if (type === 'hash') found.push(key, await client.hGetAll(key))
          else if (type === 'zset') found.push(key, await client.zRange(key, 0, -1))
          else found.push(key, type === 'set' ? await client.sMembers(key) : await client.dump(key))
        }
      }
      client.destroy()
      return found.map((value) => JSON.stringify(value)).join('\n')
    },
  }
}

/** SQLite always, and Redis where it is to be had. */
export const places = [inFile(), ...(redisUrl === undefined ? [] : [inRedis(redisUrl)])]
