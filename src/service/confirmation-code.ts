import type { Settings } from './config.ts'

/** The option. */
type ConfirmationCodeSetting = Settings['confirmationCode']

/** Where the service is. */
interface ServicePlace {
  /** Origin that people reach it by; empty if it is not known. */
  readonly publicUrl: string
  /** Whether it is for trying out: a loopback name, or `--lan`. */
  readonly isLocal: boolean
}

/** How orders use their code: as the option says, or else `return` wherever strangers could relay orders. */
export function confirmationCodeAt(given: ConfirmationCodeSetting, { isLocal }: ServicePlace): 'compare' | 'return' {
  return given ?? (isLocal ? 'compare' : 'return')
}

/** The line that a start logs, unless the place is local or the option is `return`; then `undefined`. */
export function confirmationCodeLine(
  given: ConfirmationCodeSetting,
  { publicUrl, isLocal }: ServicePlace,
): string | undefined {
  if (isLocal || given === 'return') return undefined
  const name = 'confirmationCode (COUNTERSIGN_CONFIRMATION_CODE)'
  const at = publicUrl === '' ? 'an address that is not known to be a loopback name' : publicUrl
  if (given === 'compare') {
    return `${name} is compare, which stops no relayed order, at ${at}; set it to return (docs/cross-device-security.md)`
  }
  return (
    `${name} is return, the default at ${at}: computers ask for the code that the phone shows; set the option to ` +
    'silence this line'
  )
}
