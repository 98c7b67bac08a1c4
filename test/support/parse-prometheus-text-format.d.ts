declare module 'parse-prometheus-text-format' {
  /** A family of metrics. The library tells no labels of histograms. */
  export interface Family {
    readonly name: string
    readonly help: string
    readonly type: 'COUNTER' | 'GAUGE' | 'HISTOGRAM' | 'SUMMARY' | 'UNTYPED'
    readonly metrics: readonly { readonly value: string; readonly labels?: Readonly<Record<string, string>> }[]
  }
  export default function parse(text: string): Family[]
}
