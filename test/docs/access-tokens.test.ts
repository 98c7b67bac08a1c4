import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ed25519, es256, hs256, jwt, makeEllipticKey, makeKey } from '../integrations/backend/forge.ts'
import { run } from '../support/command.ts'
import { listening } from '../support/listening.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { readFromRoot } from '../support/repository.ts'
import { withSources, workFolder } from '../support/snippets.ts'

const nodeCode = await readFromRoot('examples/backend/access-token.ts')
const pythonCode = await readFromRoot('examples/python/access_token.py')

const audience = 'https://orders.example'

/** A key set behind a port, tokens of its issuer, and a folder to run a snippet in. */
async function setUp() {
  const key = makeEllipticKey()
  const server = createServer((request, response) => {
    if (request.url !== '/.well-known/jwks.json') return response.writeHead(404).end()
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ keys: [{ ...key.jwk, kid: key.kid, alg: 'ES256', use: 'sig' }] }))
  })
  const issuer = await listening(server)

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
  return { issuer, folder: await workFolder(), good: jwt(header, claims, es256(key)), wrong }
}

test('the program for Node.js serves the users of good tokens, and no others', async () => {
  const { issuer, folder, good, wrong } = await setUp()
  const file = join(folder, 'server.ts')
  const code = withSources(nodeCode)
    .replace('https://auth.example', issuer)
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

test.runIf(hasPart('python3-jwt'))('the Python program accepts good tokens and no others', async () => {
  const { issuer, folder, good, wrong } = await setUp()
  const file = join(folder, 'verify.py')
  const program = `${pythonCode.replace('https://auth.example', issuer)}
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
