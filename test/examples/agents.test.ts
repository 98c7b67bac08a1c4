import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { application, startApprovals, type TestUser } from '../integrations/approvals/support.ts'
import { run } from '../support/command.ts'
import { hasPart } from '../support/optional.ts'
import { root } from '../support/repository.ts'
import { folderOfFile, temporaryFolder } from '../support/temporary-folder.ts'
import { environment, minuteMs } from './tools.ts'

vi.setConfig({ testTimeout: 3 * minuteMs })

/** A clone, whose examples have their own packages: the newest. */
const clone = folderOfFile()
const agents = join(clone, 'examples/approvals/agents')

/** Takes a step of the graph, and keeps its checkpoints in a file, as a database does. */
const graphProgram = `
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { deserialize, serialize } from 'node:v8'
import { Command, MemorySaver } from '@langchain/langgraph'
import { transferGraph } from './graph.ts'
const [checkpoints, ledger, step] = process.argv.slice(2)
const saver = new MemorySaver()
if (existsSync(checkpoints)) Object.assign(saver, deserialize(readFileSync(checkpoints)))
const graph = transferGraph(saver, async ({ to, amount }) => appendFileSync(ledger, amount + ' to ' + to + '\\n'))
const input = step === 'begin' ? { transfer: { to: 'bakery', amount: 25 } } : new Command({ resume: 'approved' })
const signal = step === 'stopped' ? { signal: AbortSignal.timeout(2000) } : {}
const state = await graph.invoke(input, { configurable: { thread_id: 'one' }, ...signal }).catch(({ name }) => ({ name }))
if (step !== 'stopped') writeFileSync(checkpoints, serialize({ storage: saver.storage, writes: saver.writes }))
console.log(JSON.stringify(state))
// A server goes on after a graph was stopped.
if (step === 'stopped') process.stdin.resume()
`

async function start() {
  const { url, user } = await startApprovals()
  const env = {
    ...environment,
    ...{ SIGN_URL: url, START_KEY: application.startKey, APP_NAME: application.appName, ORIGIN: application.origin },
    ...{ USER_ID: user.id, ADAPTER_ID: 'nimiq', ADDRESS: user.wallet.address },
  }
  const file = join(temporaryFolder(), 'ran')
  const ran = async () => (await readFile(file, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '')
  return { user, env, file, ran }
}

/** The order that waits for the user, besides those that are known. */
async function asked(user: TestUser, ...known: readonly string[]): Promise<string> {
  let found: string | undefined
  await vi.waitFor(
    async () => {
      found = (await user.inbox()).find((id) => !known.includes(id))
      expect(found).toBeDefined()
    },
    { timeout: minuteMs, interval: 100 },
  )
  return String(found)
}

describe.skipIf(!hasPart('npm registry'))('by', () => {
  beforeAll(async () => {
    for (const name of ['src', 'gen', 'node_modules']) await symlink(join(root, name), join(clone, name))
    await cp(join(root, 'package.json'), join(clone, 'package.json'))
    await cp(join(root, 'examples/approvals'), join(clone, 'examples/approvals'), { recursive: true })
    await writeFile(join(agents, 'step.ts'), graphProgram)
    const install = ['install', '--prefix', agents, '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error']
    await run('npm', install, { cwd: clone, env: environment, timeout: 10 * minuteMs })
  }, 10 * minuteMs)

  describe('the hook of a coding agent', () => {
    /** A stand-in for the agent: it runs a command by what the hook answers, as the agents' documents say. */
    function callTool(command: string, env: NodeJS.ProcessEnv) {
      const child = spawn(process.execPath, ['hook.ts'], { cwd: agents, env, stdio: ['pipe', 'pipe', 'ignore'] })
      onTestFinished(() => void child.kill('SIGKILL'))
      const call = { hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_input: { command }, cwd: agents }
      child.stdin.end(JSON.stringify(call))
      const done = async (): Promise<string> => {
        const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
        expect(code).toBe(0)
        const { permissionDecision, permissionDecisionReason, updatedInput } = JSON.parse(said).hookSpecificOutput
        if (permissionDecision === 'allow') await run('sh', ['-c', updatedInput.command])
        return permissionDecisionReason
      }
      return { child, done: done() }
    }

    test('a command runs once it is signed, once, and not after a decline', async () => {
      const { user, env, file, ran } = await start()
      const signed = callTool(`echo first >> ${file}`, env)
      const order = await asked(user)
      expect(await ran()).toEqual([])
      await user.approve(order)
      expect(await signed.done).toMatch(/^Signed by NQ/)
      expect(await ran()).toEqual(['first'])
      const declined = callTool(`echo second >> ${file}`, env)
      await user.reject(await asked(user, order))
      expect(await declined.done).toBe('Not approved: declined')
      expect(await ran()).toEqual(['first'])
    })

    test('a command does not run when its time is over, of several lines, or without a service', async () => {
      const { env, file, ran } = await start()
      expect(await callTool(`echo late >> ${file}`, { ...env, WAIT_SECONDS: '2' }).done).toMatch(
        /^Not approved: .*time/,
      )
      expect(await callTool(`echo a >> ${file}\necho b >> ${file}`, env).done).toMatch(/^Not approved: .*U\+000A/)
      const away = { ...env, SIGN_URL: 'http://localhost:1' }
      expect(await callTool(`echo away >> ${file}`, away).done).toMatch(/^Not approved: /)
      expect(await callTool(`echo unset >> ${file}`, { ...env, ADDRESS: '' }).done).toMatch(/^Not approved: ADDRESS/)
      expect(await ran()).toEqual([])
    })

    test('what was asked before a restart runs nothing: the next call asks again', async () => {
      const { user, env, file, ran } = await start()
      const before = callTool(`echo again >> ${file}`, env)
      before.done.catch(() => {})
      const first = await asked(user)
      before.child.kill('SIGKILL')
      await user.approve(first)
      const after = callTool(`echo again >> ${file}`, env)
      const second = await asked(user, first)
      expect(await ran()).toEqual([])
      await user.approve(second)
      await after.done
      expect(await ran()).toEqual(['again'])
    })
  })

  describe('the MCP server', () => {
    async function connect(env: NodeJS.ProcessEnv) {
      const load = createRequire(join(agents, 'package.json'))
      const { Client } = load('@modelcontextprotocol/sdk/client/index.js')
      const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js')
      const client = new Client({ name: 'agent', version: '1.0.0' })
      const command = { command: process.execPath, args: ['command-server.ts'], cwd: agents, env, stderr: 'ignore' }
      await client.connect(new StdioClientTransport(command))
      onTestFinished(() => client.close())
      const call = async (line: string, timeout = minuteMs): Promise<string> =>
        (await client.callTool({ name: 'run_command', arguments: { command: line } }, undefined, { timeout }))
          .content[0].text
      return { client, call }
    }

    test('a command runs once it is signed, once, and not after a decline', async () => {
      const { user, env, file, ran } = await start()
      const { call } = await connect(env)
      const signed = call(`echo first >> ${file}; echo done`)
      const order = await asked(user)
      expect(await ran()).toEqual([])
      await user.approve(order)
      expect(await signed).toBe('done\n')
      const declined = call(`echo second >> ${file}`)
      await user.reject(await asked(user, order))
      expect(await declined).toBe('Not run: declined')
      expect(await ran()).toEqual(['first'])
    })

    test('what is signed after the client has given up, or has gone, does not run', async () => {
      const { user, env, file, ran } = await start()
      const { client, call } = await connect(env)
      const late = call(`echo late >> ${file}`, 5000).catch(({ message }: Error) => message)
      const first = await asked(user)
      expect(await late).toMatch(/timed out/)
      await user.approve(first)
      const gone = call(`echo gone >> ${file}`).catch(({ message }: Error) => message)
      const second = await asked(user, first)
      await client.close()
      expect(await gone).toMatch(/closed/)
      await user.approve(second)
      const again = (await connect(env)).call(`echo again >> ${file}`)
      await user.approve(await asked(user, first, second))
      await again
      expect(await ran()).toEqual(['again'])
    })
  })

  describe('the graph of LangGraph, each step of it in a process of its own,', () => {
    async function startGraph() {
      const { user, env, file, ran } = await start()
      const checkpoints = `${file}.checkpoints`
      const step = (name: string, from = checkpoints) => {
        const args = ['step.ts', from, file, name]
        const child = spawn(process.execPath, args, { cwd: agents, env, stdio: ['pipe', 'pipe', 'inherit'] })
        onTestFinished(() => void child.kill('SIGKILL'))
        return text(child.stdout).then((said) => JSON.parse(said))
      }
      const begun = await step('begin')
      expect(begun.__interrupt__).toMatchObject([{ value: { approveAt: begun.url } }])
      return { user, env, file, ran, checkpoints, step, order: await asked(user) }
    }

    test('a transfer is made once it is signed, and not again from an older checkpoint', async () => {
      const { user, ran, checkpoints, step, order } = await startGraph()
      await copyFile(checkpoints, `${checkpoints}.old`)
      const resumed = step('resume')
      await user.open(order)
      expect(await ran()).toEqual([])
      await user.approve(order)
      expect(await resumed).toMatchObject({ said: 'Transferred 25 to bakery' })
      expect(await step('resume', `${checkpoints}.old`)).toMatchObject({ said: 'Not done: ALREADY_USED' })
      expect(await ran()).toEqual(['25 to bakery'])
    })

    test('a transfer is not made after a decline', async () => {
      const { user, ran, step, order } = await startGraph()
      await user.reject(order)
      expect(await step('resume')).toMatchObject({ said: 'Not done: declined' })
      expect(await ran()).toEqual([])
    })

    test('a graph that was stopped makes no transfer: what is signed then waits for the next resume', async () => {
      const { user, env, file, ran, checkpoints, step, order } = await startGraph()
      const args = ['step.ts', checkpoints, file, 'stopped']
      const stopped = spawn(process.execPath, args, { cwd: agents, env, stdio: ['pipe', 'pipe', 'inherit'] })
      onTestFinished(() => void stopped.kill('SIGKILL'))
      const [line] = await once(stopped.stdout, 'data')
      expect(String(line)).toMatch(/Abort|Timeout/)
      await user.approve(order)
      expect(await step('resume')).toMatchObject({ said: 'Transferred 25 to bakery' })
      expect(await ran()).toEqual(['25 to bakery'])
    })
  })
})
