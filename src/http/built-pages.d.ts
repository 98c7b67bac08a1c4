import type { BuiltPages } from './page-files.ts'

/** The type of `#pages`, which is built: tsconfig.json leads here, because the file itself is no source. */
declare const built: BuiltPages
export default built
