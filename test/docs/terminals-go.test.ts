import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { run } from '../support/command.ts'
import { unpackNewer } from '../support/newer-packages.ts'
import { hasPart } from '../support/optional.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { runTerminal, terminalIn } from './terminal-programs.ts'

test.skipIf(!hasPart('apt-get') || !hasPart('go'))(
  'the program in Go prints the ID token of who is signed in',
  async () => {
    const folder = temporaryFolder()
    // It needs the standard library alone.
    await unpackNewer(['golang-golang-x-oauth2-dev'], folder)
    writeFileSync(join(folder, 'main.go'), await terminalIn('go'))
    const go = {
      GO111MODULE: 'off',
      GOPATH: join(folder, 'root/usr/share/gocode'),
      GOCACHE: join(folder, 'cache-of-go'),
    }
    await run('go', ['build', '-o', 'terminal', 'main.go'], {
      cwd: folder,
      env: { ...process.env, ...go },
    })
    const { printed, session } = await runTerminal(join(folder, 'terminal'), [])
    const [, payload = ''] = printed.split('.')
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toMatchObject({
      sub: session.userId,
      aud: 'tulip-cli',
    })
  },
  300_000,
)
