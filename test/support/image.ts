import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, copyFile, cp, mkdtemp, readFile, realpath, symlink } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'

const run = promisify(execFile)

/** An image: what it says of how to run it, and the folder that has its root. */
export interface Image {
  readonly root: string
  readonly environment: Readonly<Record<string, string>>
  readonly workdir: string
  /** Number of the user and of its group, such as `1000:1000`. */
  readonly user: string
  readonly volumes: readonly string[]
  readonly entrypoint: readonly string[]
  readonly healthcheck: readonly string[]
  readonly stopSignal: string
}

/** A container, stopped when the test ends. */
export interface Container {
  /** What it wrote to its standard error. */
  log(): string
  /** Sends a signal to its first process. */
  signal(signal: NodeJS.Signals): Promise<void>
  /** Sends a signal to its first process, and resolves with the exit code. */
  stop(signal: NodeJS.Signals): Promise<number | null>
  /** Resolves with the exit code when it has ended. */
  readonly exited: Promise<number | null>
}

/** The certificates of this machine, which the package registry may need. */
const certificates = '/etc/ssl/certs/ca-certificates.crt'

/**
 * Builds the image of a Dockerfile with Buildah, without a daemon, into an empty folder. Its base is not pulled: it is a
 * Debian of debootstrap, with the Node.js that runs the tests, npm, and a user `node`. Needs root.
 */
export async function buildImage(context: string, folder: string, commit: string): Promise<Image> {
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs']
  const buildah = async (command: string, ...args: string[]): Promise<string> =>
    (await run('buildah', [...storage, command, ...args], { maxBuffer: 2 ** 26 })).stdout.trim()
  const base = await buildah('from', 'scratch')
  await makeBase(await buildah('mount', base))
  const { stdout: registry } = await run('npm', ['config', 'get', 'registry'])
  const variables = [`NODE_EXTRA_CA_CERTS=${certificates}`, `npm_config_registry=${registry.trim()}`]
  await buildah('config', ...variables.flatMap((variable) => ['--env', variable]), base)
  await buildah('commit', '--quiet', '--rm', base, 'base')
  const inputs = ['NODE_IMAGE=localhost/base', `COMMIT=${commit}`].flatMap((input) => ['--build-arg', input])
  await buildah('build', '--isolation', 'chroot', '--format', 'docker', ...inputs, '--tag', 'countersign', context)
  const { config } = JSON.parse(await buildah('inspect', '--type', 'image', 'countersign')).Docker
  return {
    root: await buildah('mount', await buildah('from', 'countersign')),
    environment: Object.fromEntries(config.Env.map((each: string) => /^([^=]*)=(.*)$/s.exec(each)?.slice(1))),
    workdir: config.WorkingDir,
    user: config.User,
    volumes: Object.keys(config.Volumes),
    entrypoint: config.Entrypoint,
    // Behind CMD.
    healthcheck: config.Healthcheck.Test.slice(1),
    stopSignal: config.StopSignal,
  }
}

/** Fills a folder with what the base image has. */
async function makeBase(root: string): Promise<void> {
  const [, suite = ''] = /^VERSION_CODENAME=(\w+)$/m.exec(await readFile('/etc/os-release', 'utf8')) ?? []
  await run('debootstrap', ['--variant=minbase', '--include=ca-certificates,libatomic1', suite, root], {
    maxBuffer: 2 ** 26,
  })
  await copyFile(process.execPath, join(root, 'usr/local/bin/node'))
  const { stdout: npm } = await run('sh', ['-c', 'command -v npm'])
  const script = await realpath(npm.trim())
  const modules = join(root, 'usr/local/lib/node_modules')
  await cp(dirname(dirname(script)), join(modules, 'npm'), { recursive: true })
  await symlink(
    relative(join(root, 'usr/local/bin'), join(modules, 'npm/bin/npm-cli.js')),
    join(root, 'usr/local/bin/npm'),
  )
  await appendFile(join(root, 'etc/passwd'), 'node:x:1000:1000::/home/node:/bin/bash\n')
  await appendFile(join(root, 'etc/group'), 'node:x:1000:\n')
  await copyFile(certificates, join(root, certificates))
}

/** How a container differs from its image. */
interface ContainerOptions {
  readonly environment?: Readonly<Record<string, string>>
  /** Folders, by the path at which they are mounted. */
  readonly volumes?: Readonly<Record<string, string>>
  readonly user?: string
}

/**
 * Runs a command as the first process of a container, as `docker run --read-only --cap-drop ALL --security-opt
 * no-new-privileges` does. The network is this machine's own.
 */
export async function runContainer(
  image: Image,
  command: readonly string[],
  { environment = {}, volumes = {}, user = image.user }: ContainerOptions,
): Promise<Container> {
  const root = await mkdtemp(join(image.root, '../container-'))
  const [uid, gid] = user.split(':')
  const script = `set -e
    mount --make-rprivate /
    mount --bind ${image.root} ${root}
    mount -o remount,bind,ro ${root}
    ${Object.entries(volumes)
      .map(([path, own]) => `mount --bind ${own} ${root}${path}`)
      .join('\n')}
    mount -t proc proc ${root}/proc
    mount --bind /dev ${root}/dev
    exec chroot ${root} setpriv --reuid=${uid} --regid=${gid} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \\
      env --ignore-environment --chdir=${image.workdir} "$@"`
  const assigned = Object.entries({ ...image.environment, ...environment }).map(([name, value]) => `${name}=${value}`)
  const args = ['--mount', '--pid', '--fork', 'sh', '-c', script, 'sh', ...assigned, ...command]
  const child = spawn('unshare', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk
  })
  const exited = once(child, 'close').then(([code]) => code as number | null)
  const signal = async (name: NodeJS.Signals): Promise<void> => {
    const first = await firstProcess(child)
    if (first !== undefined) process.kill(first, name)
  }
  const stop = async (name: NodeJS.Signals): Promise<number | null> => {
    await signal(name)
    return await exited
  }
  onTestFinished(async () => void (await stop('SIGKILL')))
  return { log: () => log, signal, stop, exited }
}

/** The first process of the namespace that `unshare` made. */
async function firstProcess({ pid }: ChildProcess): Promise<number | undefined> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return children === '' ? undefined : Number(children)
}
