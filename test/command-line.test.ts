import { expect, test } from 'vitest'
import { readCommandLine } from '../src/command-line.ts'

test.each([
  [[], { help: false, lan: false }],
  [['--lan'], { help: false, lan: true }],
  [['--help'], { help: true, lan: false }],
  [['-h'], { help: true, lan: false }],
  [['help'], { help: true, lan: false }],
])('the arguments %j', (args, asked) => {
  expect(readCommandLine(args)).toEqual(asked)
})

test.each([
  [['--lan', '--port=1'], '--port=1'],
  [['--lan=yes'], '--lan=yes'],
  [['--no-lan'], '--no-lan'],
  [['lan'], 'lan'],
  [['--', '--lan'], '--lan'],
  [['-x'], '-x'],
  [['--toString'], '--toString'],
  [['a\nb'], 'a\\nb'],
])('of %j, the one that is unknown is named in one line', (args, named) => {
  expect(() => readCommandLine(args)).toThrow(`unknown argument "${named}"; --help shows those there are`)
})
