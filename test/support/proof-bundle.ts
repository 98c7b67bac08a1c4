import { fileURLToPath } from 'node:url'
import { build, type Metafile } from 'esbuild'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** `countersign/proof` as an application bundles it for browsers: one file. */
export async function bundleProof(): Promise<{ readonly metafile: Metafile; readonly script: string }> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: { proof: 'src/integrations/proof/index.ts' },
    outdir: 'not-written',
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  const [script] = outputFiles.map(({ text }) => text)
  return { metafile, script: script as string }
}
