import { readFile } from 'node:fs/promises'
import { build, type Metafile } from 'esbuild'
import { expect, test } from 'vitest'
import { root } from '../support/repository.ts'

/** Builds an example as its reader would, and returns what went into it. */
async function buildExample(entry: string): Promise<{ code: string; inputs: Metafile['inputs'] }> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [`examples/${entry}`],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
    metafile: true,
    write: false,
    logLevel: 'silent',
  })
  return { code: outputFiles[0]?.text ?? '', inputs: metafile.inputs }
}

test('the plain page is built, and its script finds in the page what it looks for', async () => {
  const { code, inputs } = await buildExample('plain-page/main.ts')
  expect(Object.keys(inputs)).toContain('src/browser/element/element.ts')
  expect(code).toContain('countersign-sign-in')
  const html = await readFile(`${root}/examples/plain-page/index.html`, 'utf8')
  const script = await readFile(`${root}/examples/plain-page/main.ts`, 'utf8')
  const ids = [...script.matchAll(/'#([\w-]+)'/g)].map(([, id]) => id)
  expect(ids.length).toBeGreaterThan(4)
  for (const id of ids) expect(html).toContain(`id="${id}"`)
})
