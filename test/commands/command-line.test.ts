import { expect, test } from 'vitest'
import { readCommandLine, UsageError } from '../../src/commands/command-line.ts'

const nothing = { help: false, version: false, lan: false, options: {} }

test.each([
  [[], {}],
  [['--lan'], { lan: true }],
  [['--help'], { help: true }],
  [['-h'], { help: true }],
  [['help'], { help: true }],
  [['--version'], { version: true }],
  [['--port', '0'], { options: { port: 0 } }],
  [['--port=65535', '--lan'], { lan: true, options: { port: 65_535 } }],
  [['--host', '::1', '--port', '80'], { options: { host: '::1', port: 80 } }],
  [['--store=sqlite::memory:'], { options: { store: 'sqlite::memory:' } }],
])('the arguments %j', (args, asked) => {
  expect(readCommandLine(args)).toEqual({ ...nothing, ...asked })
})

test.each([
  [['--lan', '--stroe=redis://:secret@host'], '--stroe'],
  [['--stroe=a\nb=c'], '--stroe'],
  [['--no-lan'], '--no-lan'],
  [['lan'], 'lan'],
  [['8080'], '8080'],
  [['--port', '1', '2'], '2'],
  [['--', '--lan'], '--lan'],
  [['-x'], '-x'],
  [['-hx'], '-hx'],
  [['--toString'], '--toString'],
  [['--options'], '--options'],
  [['a\nb'], 'a\\nb'],
])('of %j, the one that is unknown is named in one line', (args, named) => {
  expect(() => readCommandLine(args)).toThrow(new UsageError(`unknown argument "${named}"`))
})

test.each([
  [['--lan=yes'], '--lan takes no value'],
  [['--version=1'], '--version takes no value'],
  [['--host', '-'], '--host needs a value'],
  [['--port'], '--port needs a value'],
  // Otherwise it would be the address of the store.
  [['--store', '--lan'], '--store needs a value'],
  [['--host', '-h'], '--host needs a value'],
  [['--port', '--'], '--port needs a value'],
  // From a variable of the shell that is not set.
  [['--store='], '--store is empty'],
  [['--host', ''], '--host is empty'],
  [['--port', '65536'], '--port must be a whole number from 0 to 65535, not "65536"'],
  [['--port=-1'], '--port must be a whole number from 0 to 65535, not "-1"'],
  [['--port', '80a\n'], '--port must be a whole number from 0 to 65535, not "80a\\n"'],
  [['--host', 'http://a.example'], '--host must be a host name or address, not "http://a.example"'],
  [['--port', '1', '--port=2'], '--port stands twice'],
  [
    ['--lan', '--host', '127.0.0.1'],
    '--host and --lan exclude each other: with --lan the service listens on all interfaces',
  ],
])('%j is wrong usage', (args, message) => {
  expect(() => readCommandLine(args)).toThrow(new UsageError(message))
})

test('a store that does not fit is not repeated, because it can contain a password', () => {
  const read = () => readCommandLine(['--store', ' redis://:secret@localhost'])
  expect(read).toThrow(/^--store must be a store address/)
  expect(read).not.toThrow(/secret/)
})
