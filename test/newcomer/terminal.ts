import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { delimiter } from 'node:path'
import { onTestFinished } from 'vitest'

/**
 * What a newcomer's shell knows: nothing of this test run, of npm's or of this project's packages, and no settings. It keeps the
 * certificate authorities that the machine trusts: npm's global configuration may name them, too, but another Node has another one.
 */
const environment = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) =>
      !/^(NODE_(?!EXTRA_CA_CERTS$)|VITEST|TEST$|COUNTERSIGN_|REDIS_URL$|PORT$|HOST$|LOG_LEVEL$)|^npm_(command|execpath|lifecycle|node|package)/.test(
        name,
      ),
  ),
)

/** Folders in which the machine looks for programs, without those that npm has put before them. */
const machinePath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !/node_modules|node-gyp-bin/.test(folder))
  .join(delimiter)

/** A command that goes on until somebody stops it. */
export interface RunningCommand {
  /** All that it has printed. */
  output(): string
  /** Sends a signal to the command itself. */
  signal(signal: NodeJS.Signals): void
  /** Presses Ctrl+C, or sends another signal, and resolves once the command has ended. */
  interrupt(signal?: NodeJS.Signals): Promise<void>
}

/** A shell in a folder, into which commands are typed. */
export class Terminal {
  readonly #folder: string
  readonly #path: string
  readonly #settings: NodeJS.ProcessEnv

  /** `programs` is a folder to look for programs in before the machine's own; `settings` are more variables. */
  constructor(folder: string, programs?: string, settings: NodeJS.ProcessEnv = {}) {
    this.#folder = folder
    this.#path = programs === undefined ? machinePath : [programs, machinePath].join(delimiter)
    this.#settings = settings
  }

  /** Runs a command to its end, and resolves with its standard output. Rejects with all it printed if it fails. */
  async type(command: string): Promise<string> {
    const { child, exited } = this.#spawn(command)
    let output = ''
    let errors = ''
    child.stdout.on('data', (chunk: Buffer) => (output += chunk))
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk))
    const code = await exited
    if (code !== 0) throw new Error(`${command} ended with ${code}:\n${output}${errors}`)
    return output
  }

  /** Starts a command, and resolves as soon as its output matches. Rejects with what it printed if it ends before. */
  async start(command: string, ready: RegExp): Promise<RunningCommand> {
    const { child, exited } = this.#spawn(command)
    let output = ''
    await new Promise<void>((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (chunk: Buffer) => {
          output += chunk
          if (ready.test(output)) resolve()
        })
      }
      void exited.then((code) => reject(new Error(`${command} ended with ${code}:\n${output}`)))
    })
    return {
      output: () => output,
      signal: (signal) => void child.kill(signal),
      async interrupt(signal = 'SIGINT') {
        // A terminal sends it to all processes of the command.
        if (child.pid !== undefined) process.kill(-child.pid, signal)
        await exited
      },
    }
  }

  #spawn(command: string) {
    const child = spawn('bash', ['-euo', 'pipefail', '-c', command], {
      cwd: this.#folder,
      // Packages that the run has fetched once are not asked about again.
      env: { ...environment, PATH: this.#path, npm_config_prefer_offline: 'true', ...this.#settings },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    const exited = once(child, 'close').then(([code]) => code as number | null)
    onTestFinished(async () => {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
      process.kill(-child.pid, 'SIGKILL')
      await exited
    })
    return { child, exited }
  }
}
