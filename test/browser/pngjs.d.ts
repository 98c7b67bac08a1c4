declare module 'pngjs' {
  /** A picture, four bytes a pixel. */
  export interface Picture {
    readonly width: number
    readonly height: number
    readonly data: Uint8Array
  }

  /** The part of pngjs that is used here; the package has no types of its own. */
  export const PNG: {
    readonly sync: {
      read(data: Uint8Array): Picture
      write(
        picture: Picture,
        options: {
          /** Of the PNG standard: 2 is without transparency. */
          readonly colorType: number
          /** Of the PNG standard: 0 is none. */
          readonly filterType: number
          /** Of zlib, as the next one. */
          readonly deflateLevel: number
          readonly deflateStrategy: number
        },
      ): Buffer
    }
  }
}
