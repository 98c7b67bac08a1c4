/** A defence that is taken out, and the tests that have to notice. */
export interface Mutation {
  /** Number of the row of SECURITY.md's table that names the defence. */
  readonly row: number
  /** What is taken out, in words. */
  readonly takesOut: string
  readonly file: string
  /** Text of the file that is replaced. It occurs there exactly once. */
  readonly find: string
  readonly replace: string
  /** Test files, at least one of which has to fail. The row names each of them. */
  readonly tests: readonly string[]
}
