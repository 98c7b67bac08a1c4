import { createHash } from 'node:crypto'
import { appendFile, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { version } from '../../src/base/version.ts'
import { run } from '../support/command.ts'
import { root } from '../support/repository.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** A clone of the commit that is checked out, with the packages of this folder. */
async function cloned() {
  const folder = join(temporaryFolder(), 'clone')
  await run('git', ['clone', '--quiet', root, folder])
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  await appendFile(join(folder, '.git/info/exclude'), 'node_modules\n')
  const git = async (...args: string[]): Promise<string> => (await run('git', args, { cwd: folder })).stdout.trim()
  const release = (wanted: string) => run(process.execPath, ['scripts/release.ts', wanted], { cwd: folder })
  const read = (file: string): Promise<Buffer> => readFile(join(folder, file))
  return { folder, git, release, read }
}

/** Names and versions of the packages in a tree that npm prints. */
function packagesIn(tree: { readonly dependencies?: object }): string[] {
  return Object.entries(tree.dependencies ?? {}).flatMap(([name, each]) =>
    each.version === undefined ? [] : [`${name}@${each.version}`, ...packagesIn(each)],
  )
}

test('a release has a tarball of its commit, its parts as npm ls has them, checksums and notes', {
  timeout: 600_000,
}, async () => {
  const { folder, git, release, read } = await cloned()
  const { stdout } = await release(version)
  const name = `release/countersign-${version}.tgz`
  expect(stdout).toMatch(/the same from two clones/)
  expect(stdout).toContain(`npm publish ${name}\n`)
  expect(stdout).toContain(await git('rev-parse', 'HEAD'))
  for (const line of (await read('release/SHA256SUMS')).toString().trim().split('\n')) {
    const [sum, file = ''] = line.split('  ')
    expect(
      createHash('sha256')
        .update(await read(`release/${file}`))
        .digest('hex'),
    ).toBe(sum)
  }
  const notes = (await read('release/notes.md')).toString().trim()
  expect((await read('CHANGELOG.md')).toString()).toContain(`## ${version}\n\n${notes}\n`)
  const project = temporaryFolder()
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefix', project, join(folder, name)])
  const tree = JSON.parse((await run('npm', ['ls', '--all', '--json', '--prefix', project])).stdout)
  const installed = [...new Set(packagesIn(tree))].sort()
  const sbom = JSON.parse((await read('release/sbom.cdx.json')).toString())
  const parts = [sbom.metadata.component, ...sbom.components].map((each) => `${each.name}@${each.version}`)
  expect(parts.sort()).toEqual(installed)
  // Four are modules of the package redis that are of no use here.
  expect(installed.length).toBeLessThanOrEqual(24)
  const [kib] = (await run('du', ['-sk', join(project, 'node_modules')])).stdout.split('\t')
  expect(Number(kib) * 1024).toBeLessThanOrEqual(41e6)
  // Nothing but the folder that git ignores.
  expect(await git('status', '--porcelain')).toBe('')
  expect(await git('tag')).toBe(await run('git', ['tag'], { cwd: root }).then((here) => here.stdout.trim()))
})

test('a new version needs notes, and is set in all places before there is a release', async () => {
  const { folder, git, release, read } = await cloned()
  const refusal = async (wanted: string) => (await release(wanted).catch((error) => error)).stderr
  expect(await refusal('next')).toMatch(/write: npm run release -- 0\.1\.0/)
  expect(await refusal('98.7.6')).toMatch(/CHANGELOG\.md has nothing under "## 98\.7\.6"/)
  const changelog = (await read('CHANGELOG.md')).toString()
  await writeFile(join(folder, 'CHANGELOG.md'), changelog.replace('\n## ', '\n## 98.7.6\n\nNews.\n\n## '))
  expect(await refusal('98.7.6')).toMatch(/the working tree has changes/)
  await git('-c', 'user.name=n', '-c', 'user.email=n@n.example', 'commit', '-qam', 'News')
  expect(await refusal('98.7.6')).toMatch(/the version is 98\.7\.6 now: commit it/)
  // The rest says what was before a version, or from it on.
  const left = (await git('grep', '-lF', version, '--', ':!test')).split('\n')
  expect(
    left.filter(
      (file) =>
        !/^(CHANGELOG\.md|CONTRIBUTING\.md|buf\.yaml|package-lock\.json|docs\/operations\.md|src\/store\/.*|scripts\/release\.ts)$/.test(
          file,
        ),
    ),
  ).toEqual([])
  expect(JSON.parse((await read('package-lock.json')).toString()).packages['']).toMatchObject({ version: '98.7.6' })
})
