declare module 'pngjs' {
  /** The part of pngjs that the tests use; the package has no types of its own. */
  export const PNG: {
    readonly sync: {
      read(data: Uint8Array): { readonly width: number; readonly height: number; readonly data: Uint8Array }
    }
  }
}
