/**
 * Prepares a release: `npm run release -- 0.1.0` writes the folder `release`, and prints the commands that publish it.
 * It publishes nothing.
 *
 * It sets the version in all places, and stops there if that changed a file: a release is made from a commit. Then it
 * packs the package in two fresh clones, whose tarballs have to be equal, and tries one in an empty project.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from './working-copy.ts'

const exec = promisify(execFile)

/** Where the version stands, with `{version}` in its place. */
const places: readonly (readonly [file: string, text: string])[] = [
  ['package.json', '"version": "{version}"'],
  ['package-lock.json', '"name": "countersign",\n  "version": "{version}"'],
  ['package-lock.json', '"name": "countersign",\n      "version": "{version}"'],
  ['src/base/version.ts', "version = '{version}'"],
  ['gen/openapi.json', '"version": "{version}"'],
  ['deploy/kubernetes/countersign.yaml', 'countersign:{version}'],
  ['README.md', '**Status:** {version}'],
  ['docs/start.md', 'countersign-{version}.tgz'],
  ['docs/better-auth.md', 'countersign-{version}.tgz'],
  ['examples/next/README.md', 'countersign-{version}.tgz'],
  ['examples/react/README.md', 'countersign-{version}.tgz'],
  ['examples/next/package.json', '"countersign": "^{version}"'],
  ['examples/react/package.json', '"countersign": "^{version}"'],
]

/** Programs that build images, and what each takes to keep the health check beside the arguments of `docker build`. */
const builders = { docker: [], podman: ['--format', 'docker'], buildah: ['--format', 'docker'] } as const

type Builder = keyof typeof builders

/** A release, or its preparation, that cannot go on. The message says what to do. */
class ReleaseError extends Error {}

async function run(program: string, args: readonly string[], cwd: string = root, more: object = {}): Promise<string> {
  const env = { ...process.env, ...more, PATH: [dirname(process.execPath), process.env.PATH].join(':') }
  const { stdout } = await exec(program, args, { cwd, env, maxBuffer: 2 ** 26 })
  return stdout.trim()
}

/** Puts the version into all places. Throws a {@link ReleaseError} if one of them has none. */
async function setVersion(version: string): Promise<void> {
  for (const [file, text] of places) {
    const [before = '', after = ''] = text.split('{version}').map((part) => part.replace(/[.^*]/g, '\\$&'))
    const place = new RegExp(`(?<=${before})\\d+\\.\\d+\\.\\d+[\\w.-]*(?=${after})`)
    const content = await readFile(join(root, file), 'utf8')
    if (!place.test(content)) throw new ReleaseError(`${file} has no ${text}: correct the list of places`)
    await writeFile(join(root, file), content.replace(place, version))
  }
}

/** The part of the changelog about a version. */
function notesOf(changelog: string, version: string): string {
  const [, ...parts] = changelog.split(/^## /m)
  const part = parts.find((each) => each.startsWith(`${version}\n`))
  const notes = part?.slice(version.length).trim() ?? ''
  if (notes === '') throw new ReleaseError(`CHANGELOG.md has nothing under "## ${version}"`)
  return `${notes}\n`
}

/** Packs a commit in a fresh clone, with the packages that are installed here. Resolves with the tarball. */
async function packClone(commit: string, folder: string, version: string): Promise<Buffer> {
  await run('git', ['clone', '--quiet', root, folder])
  await run('git', ['-C', folder, 'checkout', '--quiet', commit])
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  await run(process.execPath, ['scripts/pack.ts', '--anew'], folder, { COMMIT: commit })
  return await readFile(join(folder, `countersign-${version}.tgz`))
}

/** Installs the tarball in an empty project. */
async function install(tarball: string, project: string): Promise<void> {
  await mkdir(project)
  await writeFile(join(project, 'package.json'), '{ "name": "project", "version": "1.0.0", "private": true }')
  await run('npm', ['install', '--no-audit', '--no-fund', tarball], project)
}

/**
 * The packages that an installation brings, as CycloneDX, with nothing of the moment and the machine in it. Not from the
 * lock file: without its development part, `npm sbom` leaves out what tests import, too.
 */
async function sbomOf(project: string, commit: string): Promise<object> {
  const { serialNumber: _, ...sbom } = JSON.parse(await run('npm', ['sbom', '--sbom-format=cyclonedx'], project))
  const timestamp = new Date(await run('git', ['show', '-s', '--format=%cI', commit])).toISOString()
  const isOwn = ({ name }: { readonly name: string }): boolean => name === 'countersign'
  const component = { ...sbom.components.find(isOwn), externalReferences: [] }
  return {
    ...sbom,
    metadata: { ...sbom.metadata, timestamp, component },
    components: sbom.components.filter((each: { readonly name: string }) => !isOwn(each)),
    dependencies: sbom.dependencies.filter(({ ref }: { readonly ref: string }) => ref !== 'project@1.0.0'),
  }
}

/** The image on which the Dockerfile builds: NODE_IMAGE, such as `oci-archive:node.tar`, or what it names. */
async function baseImage(): Promise<string> {
  const [, named = ''] = /^ARG NODE_IMAGE=(.+)$/m.exec(await readFile(join(root, 'Dockerfile'), 'utf8')) ?? []
  return process.env.NODE_IMAGE || named
}

/** The first program that works here and gets the base image. */
async function builderFor(base: string): Promise<Builder | undefined> {
  for (const builder of Object.keys(builders) as Builder[]) {
    const works = await run(builder, ['pull', base]).then(
      () => true,
      () => false,
    )
    if (works) return builder
  }
  return undefined
}

/** Builds the image, if a program here can. */
async function buildImage(image: string, commit: string): Promise<Builder | undefined> {
  const base = await baseImage()
  const builder = await builderFor(base)
  if (builder === undefined) return undefined
  const inputs = [`COMMIT=${commit}`, `NODE_IMAGE=${base}`].flatMap((input) => ['--build-arg', input])
  await run(builder, ['build', ...builders[builder], ...inputs, '--tag', image, '.'])
  return builder
}

async function release(version: string): Promise<string> {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) throw new ReleaseError('write: npm run release -- 0.1.0')
  const changes = (): Promise<string> => run('git', ['status', '--porcelain'])
  if ((await changes()) !== '') throw new ReleaseError('the working tree has changes: commit them first')
  const notes = notesOf(await readFile(join(root, 'CHANGELOG.md'), 'utf8'), version)
  await setVersion(version)
  if ((await changes()) !== '') throw new ReleaseError(`the version is ${version} now: commit it, and run this again`)

  const commit = await run('git', ['rev-parse', 'HEAD'])
  const out = join(root, 'release')
  const folder = await mkdtemp(join(tmpdir(), 'countersign-release-'))
  await rm(out, { recursive: true, force: true })
  await mkdir(out)
  try {
    const name = `countersign-${version}.tgz`
    const [tarball, other] = await Promise.all([
      packClone(commit, join(folder, 'one'), version),
      packClone(commit, join(folder, 'another-of-a-longer-path'), version),
    ])
    if (!tarball.equals(other)) throw new ReleaseError('two clones of this commit make tarballs that differ')
    await writeFile(join(out, name), tarball)
    const project = join(folder, 'project')
    await install(join(out, name), project)
    const says = await run('npx', ['countersign', '--version'], project)
    if (says !== `${version} (commit ${commit})`) throw new ReleaseError(`countersign --version says ${says}`)
    await writeFile(join(out, 'sbom.cdx.json'), `${JSON.stringify(await sbomOf(project, commit), undefined, 2)}\n`)
    await writeFile(join(out, 'notes.md'), notes)
    const image = `countersign:${version}`
    const builder = await buildImage(image, commit)
    await writeFile(join(out, 'SHA256SUMS'), await sumsOf(out))
    return textOf({ version, commit, image, builder })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The checksums of the files in a folder, as sha256sum writes them. */
async function sumsOf(folder: string): Promise<string> {
  const names = (await readdir(folder)).sort()
  const lines = names.map(async (name) => {
    const sum = createHash('sha256').update(await readFile(join(folder, name)))
    return `${sum.digest('hex')}  ${name}\n`
  })
  return (await Promise.all(lines)).join('')
}

/** What is left to do, for people. */
function textOf(made: {
  readonly version: string
  readonly commit: string
  readonly image: string
  readonly builder: Builder | undefined
}): string {
  const { version, commit, image, builder } = made
  const files = `release/countersign-${version}.tgz release/sbom.cdx.json release/SHA256SUMS`
  const push = (program: string): string[] => [
    `${program} tag ${image} registry.example/${image}`,
    `${program} push registry.example/${image}`,
  ]
  const build = `docker build --build-arg COMMIT=${commit} --tag ${image} .`
  const commands = [
    `git tag v${version} ${commit}`,
    `git push origin v${version}`,
    `npm publish release/countersign-${version}.tgz`,
    ...(builder === undefined ? [build, ...push('docker')] : push(builder)),
    `gh release create v${version} --notes-file release/notes.md ${files}`,
  ]
  const programs = Object.keys(builders).join(', ')
  const without = `\nNo image was built: none of ${programs} works here and gets the base image (NODE_IMAGE names another).`
  return `The folder release has the tarball, the same from two clones; its parts (CycloneDX), checksums and notes.${
    builder === undefined ? without : `\nThe image is ${image}.`
  }

Before you publish, on ${commit}: bash .ci/run, npm run nightly, npm run try-package

${commands.map((command) => `  ${command}`).join('\n')}`
}

if (import.meta.main) {
  try {
    console.log(await release(process.argv[2] ?? ''))
  } catch (error) {
    if (!(error instanceof ReleaseError)) throw error
    console.error(`release: ${error.message}`)
    process.exitCode = 1
  }
}
