import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { endpoints } from '../../scripts/docs/services.ts'
import { run } from '../support/command.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { executedSnippets, runShell as runSnippet, workFolder } from '../support/snippets.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makeWallet } from '../support/wallet.ts'
import { blocksOf } from './blocks.ts'

const page = await readFromRoot('docs/other-languages.md')
const snippets = (await executedSnippets('docs/other-languages.md')).map(({ code }) => code)
const [signIn = '', start = '', approve = '', , , generate = '', bufCurl = ''] = snippets

/** Runs a snippet as a shell does that stops at the first failure. */
async function runShell(code: string, cwd: string): Promise<string> {
  const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`
  return (await run('bash', ['-euo', 'pipefail', '-c', code], { cwd, env: { ...process.env, PATH } })).stdout
}

/** A folder with the toy wallet, as in a clone. */
async function folderWithWallet(): Promise<string> {
  const folder = await workFolder()
  await cp(join(root, 'examples/curl'), join(folder, 'examples/curl'), { recursive: true })
  return folder
}

async function json(folder: string, file: string) {
  return JSON.parse(await readFile(join(folder, file), 'utf8'))
}

test('there are seven', () => expect(snippets).toHaveLength(7))

test.each(endpoints)('$httpMethod $path is served, by its method alone', async ({ httpMethod, path }) => {
  const { url } = await startService()
  const call = async (method: string) => {
    const response = await fetch(`${url}/api/auth${path}`, { method })
    return ((await response.json()) as { code?: string }).code
  }
  expect(['ROUTE_NOT_FOUND', 'METHOD_NOT_ALLOWED']).not.toContain(await call(httpMethod))
  expect(await call(httpMethod === 'GET' ? 'POST' : 'GET')).toBe('METHOD_NOT_ALLOWED')
})

test('the commands of a sign-in end with a session, which the last one ends', async () => {
  const { url } = await startService()
  const folder = await folderWithWallet()
  const kept = signIn.replace('# 3.', 'echo "$token" > token.txt\n# 3.')
  const { stdout } = await runSnippet(kept, url, folder)
  expect(JSON.parse(stdout.slice(0, stdout.indexOf('}{') + 1))).toMatchObject({
    session: { adapterId: 'ed25519', userId: expect.stringMatching(/^usr_/) },
  })
  const authorization = `Bearer ${(await readFile(join(folder, 'token.txt'), 'utf8')).trim()}`
  expect((await rest(url, '/session', undefined, { authorization })).status).toBe(401)
})

test('the commands of the phone approve an order of another page, and end with the return code to show', async () => {
  const { url } = await startService({ confirmationCode: 'return' })
  const folder = await folderWithWallet()
  const { json: order } = await rest(url, '/cross-device/start', { kind: 'login' })
  await writeFile(join(folder, 'claim-url.txt'), `${order.claimUrl}\n`)
  await runSnippet(approve, url, folder)
  expect(await json(folder, 'preview.json')).toMatchObject({ kind: 'login', origin: url })
  expect(await json(folder, 'approved.json')).toMatchObject({
    status: 'approved',
    returnCode: expect.stringMatching(/^\d{6}$/),
    finishBy: expect.any(Number),
  })
})

test('the commands of the screen see each step, in the form of the page, and end with a session’s token', async () => {
  const { url } = await startService()
  const folder = await folderWithWallet()
  await writeFile(join(folder, 'approve.sh'), approve.replaceAll('http://localhost:8080', url))
  const { stdout } = await runSnippet(start, url, folder)
  expect(stdout).toMatch(/css_\S+\n$/)
  const answers = JSON.parse(`[${stdout.slice(0, stdout.lastIndexOf('}') + 1).replaceAll('}{', '},{')}]`)
  const events = answers.flatMap((answer: { events: object[] }) => answer.events)
  expect(events.map(({ status }: { status: string }) => status)).toEqual([
    'created',
    'claimed',
    'waiting_user',
    'approved',
  ])
  const [shown] = blocksOf(page).filter(({ language }) => language === 'json')
  expect(events[1]).toEqual({ ...JSON.parse(shown?.text ?? ''), at: expect.any(Number) })
})

test('a long poll without news is answered when its time is over', async () => {
  const { url } = await startService()
  const { json: order } = await rest(url, '/cross-device/start', { kind: 'login' })
  const path = `/cross-device/events?orderId=${order.orderId}&after=1&wait=1`
  const headers = { authorization: `Bearer ${order.desktopToken}`, accept: 'application/json' }
  expect((await rest(url, path, undefined, headers)).json).toEqual({ events: [] })
  expect(page).toContain('`{"events":[]}`')
})

test('a trusted web view gets a nonce, and neither the origin null nor another name of the server does', async () => {
  const { url } = await startService({ publicUrl: 'https://auth.example', trustedOrigins: ['capacitor://localhost'] })
  const nonce = async (headers: Record<string, string>) => (await rest(url, '/wallet/nonce', {}, headers)).json
  expect(await nonce({ origin: 'capacitor://localhost' })).toMatchObject({ origin: 'capacitor://localhost' })
  expect(await nonce({ origin: 'null' })).toMatchObject({ code: 'ORIGIN_NOT_TRUSTED' })
  expect(await nonce({})).toMatchObject({ code: 'ORIGIN_NOT_TRUSTED' })
})

test('the sign-in for React Native hands the session’s token over', async () => {
  const { url } = await startService()
  const code = await readFromRoot('examples/phones/react-native.ts')
  const file = join(await workFolder(), 'react-native.ts')
  await writeFile(file, code.replace('https://auth.example', url))
  const { signIn: signInNatively } = await import(/* @vite-ignore */ pathToFileURL(file).href)
  const wallet = makeWallet()
  const tokens: string[] = []
  const sign = async (message: string) => ({ publicKeyHex: wallet.publicKeyHex, signatureHex: wallet.sign(message) })
  await signInNatively({ sign }, async (token: string) => void tokens.push(token))
  const authorization = `Bearer ${tokens[0]}`
  expect((await rest(url, '/session', undefined, { authorization })).json.session.address).toBe(wallet.address)
})

test('buf curl lists the calls and makes one, by the protos of the package', { timeout: 30_000 }, async () => {
  const { url } = await startService()
  const { stdout: output } = await runSnippet(bufCurl, url)
  const [methods, answer] = [output.slice(0, output.indexOf('{')), output.slice(output.indexOf('{'))]
  expect(methods.trim().split('\n')).toEqual(
    expect.arrayContaining(['countersign.v1.OrderService/WatchOrder', 'grpc.health.v1.Health/Check']),
  )
  expect(JSON.parse(answer)).toMatchObject({ kind: 'ORDER_KIND_LOGIN', status: 'ORDER_STATUS_CREATED' })
})

const parts = ['protobuf-compiler-grpc', 'python3-protobuf', 'python3-grpcio', 'python3-cryptography']

test.skipIf(!hasPart('protobuf-compiler-grpc'))('Java has a package, and a file for each message', async () => {
  const folder = temporaryFolder()
  await runShell(`protoc -I ${root}/gen/proto --java_out=. ${root}/gen/proto/countersign/v1/*.proto`, folder)
  const files = await readdir(join(folder, 'com/countersign/v1'))
  expect(files).toEqual(expect.arrayContaining(['IssueNonceRequest.java', 'OrderStatus.java', 'Session.java']))
})

const details = `
import sys
import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

channel = grpc.insecure_channel(sys.argv[1])
try:
    channel.unary_unary('/countersign.v1.SessionService/GetCurrentSession')(b'')
except grpc.RpcError as error:
    status = Status.FromString(dict(error.trailing_metadata())['grpc-status-details-bin'])
    info = ErrorInfo()
    status.details[0].Unpack(info)
    print(status.code, info.reason, info.domain)
`

test.skipIf(!parts.every(hasPart))('the package has what the details of a failed gRPC call are read with', async () => {
  const { url } = await startService()
  const folder = temporaryFolder()
  // Debian's compiler comes without google/protobuf; buf has them.
  const buf = join(root, 'node_modules/.bin/buf')
  const files = 'google/rpc/error_details.proto google/rpc/status.proto'
  await runShell(`${buf} build ${join(root, 'proto')} -o all.binpb`, folder)
  await runShell(`protoc --descriptor_set_in=all.binpb --python_out=. ${files}`, folder)
  // Beside the google.protobuf of the system, not in its place.
  const program = `import google\ngoogle.__path__.append(${JSON.stringify(join(folder, 'google'))})\n${details}`
  const { stdout } = await run(systemPython, ['-c', program, new URL(url).host])
  expect(stdout.trim()).toBe('16 SESSION_REQUIRED countersign')
})

test.skipIf(!parts.every(hasPart))('Python goes through an order, with code generated from the package', async () => {
  const { url } = await startService()
  const folder = temporaryFolder()
  await runShell(generate.replace('node_modules/countersign', root), folder)
  const program = join(root, 'examples/python/order.py')
  const { stdout } = await run(systemPython, [program, new URL(url).host], {
    env: { ...process.env, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' },
  })
  const [computer = '', ...lines] = stdout.trim().split('\n')
  const code = /^the computer shows the code (\d\d)$/.exec(computer)?.[1]
  expect(lines).toEqual([
    'ORDER_STATUS_CREATED',
    `the phone shows the code ${code}`,
    'ORDER_STATUS_CLAIMED',
    'ORDER_STATUS_WAITING_USER',
    'ORDER_STATUS_APPROVED',
    expect.stringMatching(/^signed in: ed25519 NQ\d\d .+$/),
    'ORDER_STATUS_FINALIZED',
  ])
})
