// Another process with a store file open, for sqlite.test.ts and sqlite-batcher.test.ts: what to do, the file, and a
// key or a number of keys.
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { raceFor } from './sqlite-race.ts'

const [action, file = '', argument = ''] = process.argv.slice(2)
const store = await openSqliteStore(file)

if (action === 'create-and-wait') {
  await store.create(argument, 'by the child', 'forever')
  process.stdout.write('created\n')
  process.stdin.resume()
}

if (action === 'lock') {
  const database = new DatabaseSync(file)
  database.exec('BEGIN IMMEDIATE')
  process.stdout.write('locked\n')
  await once(process.stdin, 'data')
  database.exec('ROLLBACK')
  process.stdout.write('free\n')
  process.exit(0)
}

if (action === 'take-all') {
  process.stdout.write('ready\n')
  await once(process.stdin, 'data')
  const taken: string[] = []
  for (let i = 0; i < Number(argument); i++) {
    if ((await store.take(`k${i}`)) !== undefined) taken.push(`k${i}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  process.stdout.write(`${JSON.stringify(taken)}\n`)
  process.exit(0)
}

if (action === 'write-and-die') {
  const keys = Array.from({ length: Number(argument) }, (_, i) => `k${i}`)
  for (const key of keys) {
    void store.create(key, 'x'.repeat(500), 'forever').then(() => {
      writeFileSync(`${file}.said`, key)
      process.kill(process.pid, 'SIGKILL')
    })
  }
}

if (action === 'race') {
  process.stdout.write('ready\n')
  await once(process.stdin, 'data')
  process.stdout.write('going\n')
  process.stdout.write(`${JSON.stringify(await raceFor(store, Number(argument)))}\n`)
  process.exit(0)
}
