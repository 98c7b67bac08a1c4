import { globSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readFromRoot, root } from '../support/repository.ts'

const pages = ['oidc-applications', 'identity-providers', 'terminals', 'mcp']
const [index = '', ...others] = await Promise.all(pages.map((page) => readFromRoot(`docs/${page}.md`)))
const linkedIn = (text: string): string[] =>
  [...text.matchAll(/\]\(\.\.\/examples\/oidc\/([^)]+)\)/g)].map(([, file = '']) => file)

test('every file of examples/oidc is in the index of applications, or on the page of its subject', () => {
  const files = globSync('**/*.*', { cwd: join(root, 'examples/oidc') })
  expect(files.length).toBeGreaterThan(40)
  // Pages of refreshing/ share it.
  const listed = [index, ...others].flatMap(linkedIn).concat('refreshing/record.js')
  expect(files.filter((file) => !listed.includes(file))).toEqual([])
})

test('a file says that it was not run where the index says so, and nowhere else', async () => {
  const [run = '', notRun = ''] = index.split('\n## Not run\n')
  const says = async (file: string) => (await readFromRoot(`examples/oidc/${file}`)).includes('Not run: ')
  for (const file of linkedIn(notRun)) expect([file, await says(file)]).toEqual([file, true])
  for (const file of linkedIn(run)) expect([file, await says(file)]).toEqual([file, false])
})
