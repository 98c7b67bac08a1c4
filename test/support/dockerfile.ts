import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, cp, mkdir, mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

/** What an image says of how to run it. */
interface ImageSettings {
  readonly environment: Readonly<Record<string, string>>
  readonly workdir: string
  /** Number of the user and of its group, such as `1000:1000`. */
  readonly user: string
  readonly volumes: readonly string[]
  readonly entrypoint: readonly string[]
  readonly healthcheck: readonly string[]
}

/** An image: its settings, and the folder with all that is its own, which lies on this machine's file system. */
export interface Image extends ImageSettings {
  readonly upper: string
}

/** A container, stopped when the test ends. */
export interface Container {
  /** What it wrote to its standard error. */
  log(): string
  /** Sends a signal to its first process, and resolves with the exit code. */
  stop(signal: NodeJS.Signals): Promise<number | null>
  /** Resolves with the exit code when it has ended. */
  readonly exited: Promise<number | null>
}

/** The program search path of Debian's images. */
const imagePath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/**
 * Builds the last stage of a Dockerfile with overlay file systems and chroot, into an empty folder. What stands in for
 * the base image is this machine's file system, with the Node.js that runs the tests and a user `node`. Needs root.
 * Throws on instructions and forms that it does not know.
 */
export async function buildImage(context: string, folder: string): Promise<Image> {
  const isSent = sentToBuilder(await readFile(join(context, '.dockerignore'), 'utf8'))
  const stages = new Map<string, Stage>()
  let last: Stage | undefined
  for (const { name, args } of instructionsOf(await readFile(join(context, 'Dockerfile'), 'utf8'))) {
    if (name === 'ARG' || name === 'LABEL' || name === 'EXPOSE') continue
    if (name === 'FROM') {
      const as = args.split(' AS ')[1] ?? 'final'
      last = await Stage.create(join(folder, as))
      stages.set(as, last)
      continue
    }
    if (last === undefined) throw new Error(`${name} comes before FROM`)
    if (name === 'COPY') {
      const [, from, names = ''] = /^(?:--from=(\S+) )?(.*)$/.exec(args) ?? []
      const stage = from === undefined ? undefined : stages.get(from)
      await last.copy(stage?.upper ?? context, names.split(' '), stage === undefined ? isSent : () => true)
    } else await last.carryOut(name, args)
  }
  if (last === undefined) throw new Error('the Dockerfile has no FROM')
  return last.image
}

/**
 * Runs a command as the first process of a container, as `docker run --read-only --cap-drop ALL --security-opt
 * no-new-privileges` does. `volumes` are folders by the path at which they are mounted. The network is this machine's
 * own.
 */
export async function runContainer(
  image: Image,
  command: readonly string[],
  { environment = {}, volumes = {} }: { environment?: Record<string, string>; volumes?: Record<string, string> },
): Promise<Container> {
  const folder = await mkdtemp(join(image.upper, '../../container-'))
  const root = join(folder, 'root')
  const work = join(folder, 'work')
  for (const part of [root, work]) await mkdir(part)
  const [uid, gid] = image.user.split(':')
  const variables = Object.entries({ PATH: imagePath, ...image.environment, ...environment })
  const script = `set -e
    mount --make-rprivate /
    mount -t overlay overlay -o ro,lowerdir=/,upperdir=${image.upper},workdir=${work} ${root}
    ${Object.entries(volumes)
      .map(([path, own]) => `mount --bind ${own} ${root}${path}`)
      .join('\n')}
    mount -t proc proc ${root}/proc
    mount --bind /dev ${root}/dev
    exec chroot ${root} setpriv --reuid=${uid} --regid=${gid} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \\
      env --ignore-environment --chdir=${image.workdir} "$@"`
  const assigned = variables.map(([name, value]) => `${name}=${value}`)
  const args = ['--mount', '--pid', '--fork', 'sh', '-c', script, 'sh', ...assigned, ...command]
  const child = spawn('unshare', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk
  })
  const exited = once(child, 'close').then(([code]) => code as number | null)
  const stop = async (signal: NodeJS.Signals): Promise<number | null> => {
    const first = await firstProcess(child)
    if (first !== undefined) process.kill(first, signal)
    return await exited
  }
  onTestFinished(async () => void (await stop('SIGKILL')))
  return { log: () => log, stop, exited }
}

/** The first process of the namespace that `unshare` made. */
async function firstProcess({ pid }: ChildProcess): Promise<number | undefined> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return children === '' ? undefined : Number(children)
}

/** A stage of a Dockerfile while it is built. */
class Stage {
  /** The folder that has what the stage has changed. */
  readonly upper: string
  readonly #folder: string
  #settings: ImageSettings = {
    environment: {},
    workdir: '/',
    user: '0:0',
    volumes: [],
    entrypoint: [],
    healthcheck: [],
  }

  private constructor(folder: string) {
    this.#folder = folder
    this.upper = join(folder, 'upper')
  }

  static async create(folder: string): Promise<Stage> {
    for (const part of ['work', 'merged']) await mkdir(join(folder, part), { recursive: true })
    const stage = new Stage(folder)
    await addBase(stage.upper)
    return stage
  }

  get image(): Image {
    return { ...this.#settings, upper: this.upper }
  }

  /** Carries out an instruction that needs nothing from outside of the stage. */
  async carryOut(name: string, args: string): Promise<void> {
    const settings = this.#settings
    if (name === 'RUN') await this.#run(args)
    else if (name === 'ENV') {
      const added = Object.fromEntries(args.split(' ').map((pair) => pair.split('=')))
      this.#settings = { ...settings, environment: { ...settings.environment, ...added } }
    } else if (name === 'WORKDIR') {
      await mkdir(join(this.upper, args), { recursive: true })
      this.#settings = { ...settings, workdir: args }
    } else if (name === 'USER') this.#settings = { ...settings, user: args }
    else if (name === 'VOLUME') this.#settings = { ...settings, volumes: [...settings.volumes, args] }
    else if (name === 'ENTRYPOINT') this.#settings = { ...settings, entrypoint: JSON.parse(args) }
    else if (name === 'HEALTHCHECK')
      this.#settings = { ...settings, healthcheck: JSON.parse(args.replace(/^.* CMD /, '')) }
    else if (name !== 'STOPSIGNAL' || args !== 'SIGTERM') throw new Error(`${name} ${args} is not known here`)
  }

  /** Copies files and the content of folders. `isSent` says which names at the top of `source` there are. */
  async copy(source: string, names: readonly string[], isSent: (name: string) => boolean): Promise<void> {
    const target = join(this.upper, resolve(this.#settings.workdir, names.at(-1) as string))
    await mkdir(target, { recursive: true })
    for (const name of names.slice(0, -1)) {
      const from = join(source, name)
      const isFolder = (await stat(from)).isDirectory()
      const entries = isFolder ? (await readdir(from)).map((entry) => join(from, entry)) : [from]
      for (const entry of entries) {
        if (resolve(from) === resolve(source) && !isSent(basename(entry))) continue
        await cp(entry, join(target, basename(entry)), { recursive: true, verbatimSymlinks: true })
      }
    }
  }

  async #run(command: string): Promise<void> {
    if (this.#settings.user !== '0:0') throw new Error('RUN after USER is not known here')
    const merged = join(this.#folder, 'merged')
    const layers = `lowerdir=/,upperdir=${this.upper},workdir=${join(this.#folder, 'work')}`
    const script = `set -e
      mount --make-rprivate /
      mount -t overlay overlay -o ${layers} ${merged}
      mount --bind /dev ${merged}/dev
      mount -t proc proc ${merged}/proc
      exec chroot ${merged} env --chdir=${this.#settings.workdir} sh -c "$1"`
    const env = { ...environmentOfBuild(), ...this.#settings.environment }
    const child = spawn('unshare', ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', script, 'sh', command], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    if (code !== 0) throw new Error(`RUN ${command} ended with ${code}: ${output}${errors}`)
  }
}

/**
 * This process's environment without what npm and the test runner have put there. Packages that are here need no
 * network.
 */
function environmentOfBuild(): NodeJS.ProcessEnv {
  const foreign = /^(npm_|NODE_ENV$|NODE_OPTIONS$|VITEST|INIT_CWD$)/
  const own = Object.entries(process.env).filter(([name]) => !foreign.test(name))
  return { ...Object.fromEntries(own), PATH: imagePath, npm_config_prefer_offline: 'true' }
}

/** Adds what the base image has and this machine may not. */
async function addBase(folder: string): Promise<void> {
  await mkdir(join(folder, 'usr/local/bin'), { recursive: true })
  await copyFile(process.execPath, join(folder, 'usr/local/bin/node'))
  await mkdir(join(folder, 'etc'))
  for (const [file, entry] of [
    ['passwd', 'node:x:1000:1000::/home/node:/bin/bash'],
    ['group', 'node:x:1000:'],
  ] as const) {
    const others = (await readFile(`/etc/${file}`, 'utf8')).split('\n').filter((line) => !/^node:|:1000:/.test(line))
    await writeFile(join(folder, 'etc', file), [entry, ...others].join('\n'))
  }
}

/** The instructions, with their continuation lines joined. */
function instructionsOf(dockerfile: string): { readonly name: string; readonly args: string }[] {
  const lines = dockerfile
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
  return lines
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', args = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
      return { name, args }
    })
}

/** Which names at the top of the context go to the builder. Only a list of those that do is known here. */
function sentToBuilder(dockerignore: string): (name: string) => boolean {
  const [first, ...others] = dockerignore.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  if (first !== '*' || others.some((line) => !/^![\w.-]+$/.test(line)))
    throw new Error('a .dockerignore of another form')
  const sent = new Set(others.map((line) => line.slice(1)))
  return (name) => sent.has(name)
}
