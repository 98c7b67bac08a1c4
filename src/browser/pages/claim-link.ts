import type { Claim } from '../client/phone-orders.ts'

const forms: Readonly<Record<string, string>> = {
  orderId: '[A-Za-z0-9_-]{1,64}',
  claimToken: '[A-Za-z0-9_.~-]{1,512}',
}

/**
 * Reads a claim URL by the service's own template, which may differ from the form that `parseClaimUrl` reads. Ignores a
 * query that the template does not have, such as those that messengers add to links. `undefined` if a part is missing.
 */
export function readClaimLink(template: string, url: Pick<URL, 'pathname' | 'search' | 'hash'>): Claim | undefined {
  const [head = '', fragment = ''] = template.replace('{origin}', '').split('#')
  const address = url.pathname + (head.includes('?') ? url.search : '')
  const found = { ...match(head || '/', address), ...match(fragment, url.hash.slice(1)) }
  const { orderId, claimToken } = found
  return orderId === undefined || claimToken === undefined ? undefined : { orderId, claimToken }
}

function match(template: string, text: string): Record<string, string> | undefined {
  const seen = new Set<string>()
  const pattern = template
    .split(/\{(orderId|claimToken)\}/)
    .map((part, index) => {
      if (index % 2 === 0) return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      // A regular expression can use each group name only once.
      const name = seen.has(part) ? '' : `?<${part}>`
      seen.add(part)
      return `(${name}${forms[part]})`
    })
    .join('')
  return new RegExp(`^${pattern}$`).exec(text)?.groups
}
