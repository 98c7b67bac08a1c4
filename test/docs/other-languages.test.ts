import { cp, readdir } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { run } from '../support/command.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { root } from '../support/repository.ts'
import { startService } from '../support/service.ts'
import { executedSnippets, runShell as runSnippet } from '../support/snippets.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const snippets = (await executedSnippets('docs/other-languages.md')).map(({ code }) => code)
const [generate = '', curl = '', bufCurl = ''] = snippets

/** Runs a snippet as a shell does that stops at the first failure. */
async function runShell(code: string, cwd: string): Promise<string> {
  const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`
  return (await run('bash', ['-euo', 'pipefail', '-c', code], { cwd, env: { ...process.env, PATH } })).stdout
}

test('there are three', () => expect(snippets).toHaveLength(3))

test('the order with curl goes to its end', { timeout: 30_000 }, async () => {
  const { url } = await startService()
  const folder = await temporaryFolder()
  await cp(join(root, 'examples/curl'), join(folder, 'examples/curl'), { recursive: true })
  const answers = await runShell(curl.replaceAll('http://localhost:8080', url), folder)
  // Answers have no line end.
  const [approved, { events }, finalized] = JSON.parse(`[${answers.replaceAll('}{', '},{')}]`)
  expect(approved).toMatchObject({ ok: true, status: 'approved' })
  expect(events).toMatchObject([{ status: 'approved' }])
  expect(finalized).toMatchObject({
    status: 'finalized',
    token: expect.stringMatching(/^css_/),
    session: { adapterId: 'ed25519' },
  })
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
  const folder = await temporaryFolder()
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
  const folder = await temporaryFolder()
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

test.skipIf(!parts.every(hasPart))(
  'Python goes through an order, with code generated from the package',
  {
    timeout: 60_000,
  },
  async () => {
    const { url } = await startService()
    const folder = await temporaryFolder()
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
  },
)
