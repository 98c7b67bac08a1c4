import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Metafile } from 'esbuild'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** `countersign/proof` as an application bundles it for browsers: what is imported on demand is in files of its own. */
export interface ProofBundle {
  readonly metafile: Metafile
  /** Texts of the files by their names. The one that the page names is `proof.js`. */
  readonly files: ReadonlyMap<string, string>
  /** Names of the files that a page loads with its first import, without those that are imported on demand. */
  readonly atOnce: readonly string[]
}

export async function bundleProof(): Promise<ProofBundle> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: { proof: 'src/integrations/proof/index.ts' },
    outdir: 'not-written',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  const files = new Map(outputFiles.map(({ path, text }) => [basename(path), text]))
  const atOnce = new Set(['not-written/proof.js'])
  for (const path of atOnce) {
    for (const { path: target, kind } of metafile.outputs[path]?.imports ?? []) {
      if (kind !== 'dynamic-import') atOnce.add(target)
    }
  }
  return { metafile, files, atOnce: [...atOnce].map((path) => basename(path)) }
}
