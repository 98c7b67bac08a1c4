import type { Kind } from './kinds.ts'

/** What is said of every option. */
interface OptionRow<Given, Value> {
  /** What it is and its unit, in Markdown, without default and bounds. Links are relative to docs/. */
  readonly about: string
  /** Environment variable. Without one, it can be set in code only. */
  readonly variable?: string
  /** Whether it can hold a secret, so that a file can have it, which a variable ending in `_FILE` names. */
  readonly fromFile?: true
  readonly kind: Kind<Given, Value>
  /** Option further up that this one must not be below. If that is above the default, it is the default. */
  readonly notBelow?: string
  /** Whether true or false in place of its group sets this option: only so, or by its name too. */
  readonly ofGroup?: 'only' | 'too'
}

/** An option that takes a `Given`, and whose `Value` the service uses. */
export interface Option<Given = never, Value = unknown> extends OptionRow<Given, Value> {
  /** Value if nothing is set: a `Given`, or `undefined`. */
  readonly default: unknown
  /** What happens if nothing is set, in Markdown, if there is no default. */
  readonly otherwise?: string
}

/** Options under one name. */
export interface Group<Options = Readonly<Record<string, Option>>> {
  /** Name of its type. */
  readonly type: string
  readonly about: string
  readonly options: Options
}

/** An option with a default. */
export function option<Given, Value>(
  row: OptionRow<Given, Value> & { readonly default: NoInfer<Given> },
): Option<Given, Value> {
  return row
}

/** An option that can stay unset. */
export function optional<Given, Value>(
  row: OptionRow<Given, Value> & { readonly otherwise: string },
): Option<Given, Value | undefined> {
  return { ...row, default: undefined }
}

/** A group of options. */
export function group<Options extends Readonly<Record<string, Option>>>(
  type: string,
  about: string,
  options: Options,
): Group<Options> {
  return { type, about, options }
}

/** Whether an entry of the tree is a group. */
export function isGroup(entry: Option | Group): entry is Group {
  return 'options' in entry
}
