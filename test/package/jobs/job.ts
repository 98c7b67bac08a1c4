import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { blocksOf } from '../../docs/blocks.ts'
import { minuteMs } from '../../examples/tools.ts'
import { type RunningCommand, Terminal } from '../../newcomer/terminal.ts'
import { run } from '../../support/command.ts'
import { buildImage, type Container, type Image, runContainer } from '../../support/image.ts'
import { hasPart } from '../../support/optional.ts'
import { freePort } from '../../support/redis-server.ts'
import { readFromRoot, root } from '../../support/repository.ts'
import { folderOfFile, temporaryFolder } from '../../support/temporary-folder.ts'
import { startRegistry } from './registry.ts'

/** The blocks of a page in a language, in its order. */
export async function codeOf(page: string, language: string): Promise<string[]> {
  const blocks = blocksOf(await readFromRoot(page))
  return blocks.filter((block) => block.language === language).map(({ text }) => text)
}

/** Puts own names and addresses in the place of those of a document, which has to have them. */
export function edited(text: string, own: Readonly<Record<string, string>>): string {
  let changed = text
  for (const [theirs, ours] of Object.entries(own)) {
    expect(changed).toContain(theirs)
    changed = changed.replaceAll(theirs, ours)
  }
  return changed
}

/** A started service. */
interface Service {
  readonly url: string
  /** Has it read its files again. */
  reload(): Promise<void>
}

/**
 * An empty folder, and a shell there, whose npm installs from the registry of the test. With an image, its service is a
 * container, whose volume is the folder.
 */
export class Desk {
  readonly folder: string
  /** Lines that were typed. */
  commands = 0
  readonly #settings: NodeJS.ProcessEnv
  readonly #image: Image | undefined
  #desks: Desk[] = []

  constructor(registry: string, folder: string, image?: Image) {
    this.folder = folder
    this.#image = image
    this.#settings = {
      npm_config_registry: registry,
      // The registry has another package of the same version each night.
      npm_config_prefer_offline: 'false',
      npm_config_loglevel: 'error',
      // The .npmrc of this repository is not a user's, but npm passes it on to the programs that it starts.
      npm_config_strict_allow_scripts: undefined,
      npm_config_allow_scripts: undefined,
    }
  }

  /** Another folder on the same machine. */
  async beside(name: string): Promise<Desk> {
    const desk = new Desk(String(this.#settings.npm_config_registry), join(this.folder, '..', name))
    await mkdir(desk.folder)
    this.#desks.push(desk)
    return desk
  }

  get allCommands(): number {
    return this.#desks.reduce((sum, { allCommands }) => sum + allCommands, this.commands)
  }

  #count(typed: string): void {
    this.commands += typed.split('\n').filter((line) => /^\s*[^\s#]/.test(line)).length
  }

  #terminal(typed: string, settings: Readonly<Record<string, string>>): Terminal {
    this.#count(typed)
    return new Terminal(this.folder, dirname(process.execPath), { ...this.#settings, ...settings })
  }

  /** Types lines. `settings` are variables that the shell has. */
  type(typed: string, settings: Readonly<Record<string, string>> = {}): Promise<string> {
    return this.#terminal(typed, settings).type(typed)
  }

  start(typed: string, ready: RegExp, settings: Readonly<Record<string, string>> = {}): Promise<RunningCommand> {
    return this.#terminal(typed, settings).start(typed, ready)
  }

  async write(file: string, text: string | object): Promise<void> {
    await writeFile(join(this.folder, file), typeof text === 'string' ? text : JSON.stringify(text))
  }

  /** Puts own names and addresses into a file. */
  async edit(file: string, own: Readonly<Record<string, string>>): Promise<void> {
    await this.write(file, edited(await readFile(join(this.folder, file), 'utf8'), own))
  }

  /** Installs packages into the empty folder. */
  async install(...packages: readonly string[]): Promise<void> {
    await this.type(`npm init -y\nnpm install ${packages.join(' ')}`)
  }

  /** Installs the service with what it needs, which an image has. */
  async installService(...packages: readonly string[]): Promise<void> {
    if (this.#image === undefined) await this.install('countersign', ...packages)
  }

  /** The folder with the configurations that documents lead to: the package, or the clone that the image is built from. */
  get sources(): string {
    return this.#image === undefined ? join(this.folder, 'node_modules/countersign') : root
  }

  /** A file of the folder as the service finds it. */
  pathOf(file: string): string {
    return this.#image === undefined ? file : join('/data', file)
  }

  /** Runs lines of a shell in a container. It has the network of this machine, and so listens on loopback alone. */
  async #contain(image: Image, typed: string, settings: Readonly<Record<string, string>>): Promise<Container> {
    this.#count(typed)
    // docs/containers.md: "A folder of the host in its place has to be writable for that user."
    await run('chown', [image.user, this.folder])
    const options = { environment: { HOST: '127.0.0.1', ...settings }, volumes: { '/data': this.folder } }
    return await runContainer(image, ['sh', '-ac', typed], options)
  }

  /** Starts the service with a page's block of settings, whose places are edited, at an address of this machine. */
  async serve(
    settings = '',
    own: Readonly<Record<string, string>> = {},
    command = 'npx --yes countersign',
  ): Promise<Service> {
    const port = String(await freePort())
    const url = `http://localhost:${port}`
    const names = settings.includes('https://auth.example') ? { 'https://auth.example': url, ...own } : own
    const block = edited(settings, names)
    if (this.#image === undefined) {
      const running = await this.start(`${block && `set -a\n${block}`}${command}`, /"text":"ready"/, { PORT: port })
      return { url, reload: async () => running.signal('SIGHUP') }
    }
    const main = this.#image.entrypoint.join(' ')
    const container = await this.#contain(this.#image, `${block}exec ${main}`, { PORT: port })
    const ended = container.exited.then(() => Promise.reject(new Error(container.log())))
    await Promise.race([ended, vi.waitUntil(() => container.log().includes('"text":"ready"'), minuteMs)])
    return { url, reload: () => container.signal('SIGHUP') }
  }

  /** Types commands for operators. Resolves with what they print. */
  async administer(typed: string, settings: Readonly<Record<string, string>>): Promise<string> {
    const commandsOf = (program: string) => typed.replaceAll(/^countersign/gm, program)
    if (this.#image === undefined) return await this.type(commandsOf('npx countersign'), settings)
    const container = await this.#contain(this.#image, `set -e\n${commandsOf('>&2 node dist/src/main.js')}`, settings)
    expect([await container.exited, container.log()]).toEqual([0, expect.anything()])
    return container.log()
  }
}

/** What a job took. */
interface Line {
  readonly job: string
  readonly minutes: string
  readonly commands: number
  readonly words: number
  readonly outcome: string
}

const hasBuilder = hasPart('buildah and debootstrap, as root')
const hasParts = ['npm registry', 'openssl', 'nginx', 'curl'].map(hasPart).every(Boolean)

/** A registry for the jobs of a file, which are tests. The table of what they took is printed at the end. */
export function useJobs() {
  const lines: Line[] = []
  let registry = ''
  let built: Promise<Image> | undefined
  beforeAll(async () => {
    if (hasParts) registry = process.env.JOBS_REGISTRY ?? (await startRegistry(join(folderOfFile(), 'registry')))
  }, 15 * minuteMs)
  afterAll(() => console.table(lines))

  /** A job of a user who has read some pages. `work` resolves with what the user sees at the end. */
  return (name: string, pages: readonly string[], work: (desk: Desk) => Promise<string>, hasImage = false): void =>
    test.skipIf(!hasParts || (hasImage && !hasBuilder))(name, { timeout: 30 * minuteMs }, async () => {
      const texts = await Promise.all(pages.map((page) => readFromRoot(page)))
      const words = texts.join('\n').match(/\S+/g)?.length ?? 0
      if (hasImage) built ??= buildImage(root, folderOfFile(), '')
      const desk = new Desk(registry, join(temporaryFolder(), 'first'), hasImage ? await built : undefined)
      await mkdir(desk.folder)
      const startedAt = performance.now()
      const outcome = await work(desk).catch((error: Error) => {
        lines.push({ job: name, minutes: '', commands: desk.allCommands, words, outcome: 'failed' })
        throw error
      })
      const minutes = ((performance.now() - startedAt) / minuteMs).toFixed(1)
      lines.push({ job: name, minutes, commands: desk.allCommands, words, outcome })
    })
}
