import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { ed25519, es256, hs256, jwt, makeEllipticKey, makeKey } from '../integrations/backend/forge.ts'
import { hasPart, systemPython } from '../support/optional.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const page = await readFile(join(root, 'docs/access-tokens.md'), 'utf8')

/** The page's snippets that say they are executed, by language. */
const snippets = Object.fromEntries(
  [...page.matchAll(/<!-- executed by test\/docs -->\n```(\w+)\n([\s\S]*?)```/g)].map(([, language, code]) => [
    language as string,
    code as string,
  ]),
)

const audience = 'https://orders.example'

/** A key set behind a port, tokens of its issuer, and a folder to run a snippet in. */
async function setUp() {
  const key = makeEllipticKey()
  const server = createServer((request, response) => {
    if (request.url !== '/.well-known/jwks.json') return response.writeHead(404).end()
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ keys: [{ ...key.jwk, kid: key.kid, alg: 'ES256', use: 'sig' }] }))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const folder = await mkdtemp(join(tmpdir(), 'countersign-access-tokens-'))
  onTestFinished(async () => {
    server.close()
    server.closeAllConnections()
    await rm(folder, { recursive: true, force: true })
  })

  const header = { alg: 'ES256', typ: 'at+jwt', kid: key.kid }
  const now = Math.floor(Date.now() / 1000)
  const claims = {
    iss: issuer,
    aud: audience,
    sub: 'u1',
    sid: 's1',
    iat: now,
    exp: now + 300,
    jti: 'j1',
    wallet: { adapter_id: 'nimiq', address: 'NQ07', public_key_hex: 'ab' },
  }
  const other = makeEllipticKey()
  const wrong = {
    typ: jwt({ ...header, typ: 'JWT' }, claims, es256(key)),
    audience: jwt(header, { ...claims, aud: 'https://chat.example' }, es256(key)),
    issuer: jwt(header, { ...claims, iss: 'https://evil.example' }, es256(key)),
    expiry: jwt(header, { ...claims, exp: now - 60 }, es256(key)),
    key: jwt(header, claims, es256(other)),
    'key’s name': jwt({ ...header, kid: other.kid }, claims, es256(other)),
    'algorithm of another key': jwt({ ...header, alg: 'EdDSA' }, claims, ed25519(makeKey())),
    algorithm: jwt({ ...header, alg: 'none' }, claims, () => Buffer.alloc(0)),
    'kind of key': jwt({ ...header, alg: 'HS256' }, claims, hs256(key.jwk.x)),
  }
  return { issuer, folder, good: jwt(header, claims, es256(key)), wrong }
}

test('the Node.js snippet serves the users of good tokens, and no others', async () => {
  const { issuer, folder, good, wrong } = await setUp()
  const file = join(folder, 'server.ts')
  const code = snippets
    .ts!.replace('https://auth.example', issuer)
    .replace("'countersign/backend'", JSON.stringify(join(root, 'src/integrations/backend/index.ts')))
    .replace('.listen(3000)', ".listen(0, '127.0.0.1', function () { console.log(this.address().port) })")
  await writeFile(file, code)
  const running = execFile(process.execPath, [file])
  onTestFinished(() => void running.kill())
  const [port] = await new Promise<[string]>((resolve) => running.stdout!.once('data', (data) => resolve([data])))
  const answer = async (authorization: string | undefined) =>
    await fetch(`http://127.0.0.1:${Number(port)}`, {
      headers: authorization === undefined ? {} : { authorization },
    })
  const served = await answer(`Bearer ${good}`)
  expect([served.status, await served.text()]).toEqual([200, 'User u1 with the wallet NQ07\n'])
  expect((await answer(undefined)).status).toBe(401)
  for (const [name, token] of Object.entries(wrong)) {
    expect([name, (await answer(`Bearer ${token}`)).status]).toEqual([name, 401])
  }
})

test.runIf(hasPart('python3-jwt'))('the Python snippet accepts good tokens and no others', async () => {
  const { issuer, folder, good, wrong } = await setUp()
  const file = join(folder, 'verify.py')
  const program = `${snippets.python!.replace('https://auth.example', issuer)}
import json, sys
def verdict(token):
    try:
        return verify(token)["sub"]
    except jwt.PyJWTError as error:
        return type(error).__name__
print(json.dumps({name: verdict(token) for name, token in json.loads(sys.argv[1]).items()}))
`
  await writeFile(file, program)
  const { stdout } = await run(systemPython, [file, JSON.stringify({ good, ...wrong })])
  expect(JSON.parse(stdout)).toEqual({
    good: 'u1',
    typ: 'InvalidTokenError',
    audience: 'InvalidAudienceError',
    issuer: 'InvalidIssuerError',
    expiry: 'ExpiredSignatureError',
    key: 'InvalidSignatureError',
    'key’s name': 'PyJWKClientError',
    'algorithm of another key': 'InvalidAlgorithmError',
    algorithm: 'InvalidAlgorithmError',
    'kind of key': 'InvalidAlgorithmError',
  })
})

test('its links lead somewhere', () => {
  for (const [, target] of page.matchAll(/\]\((?!https?:)([^)#]+)/g)) {
    expect(existsSync(join(root, 'docs', target as string)), target).toBe(true)
  }
})
