/** The beginning and the end of an address, of a contract wallet's without its chain. */
export function shortAddress(address: string): string {
  const own = address.replace(/^.*:/, '')
  const groups = own.split(' ')
  const beginning = groups.length > 2 ? groups.slice(0, 2).join(' ') : own.slice(0, 6)
  return own.length < 20 ? own : `${beginning} … ${own.slice(-4)}`
}
