/** What a wallet says of itself, made fit to be shown: any script in the page can announce a wallet. */

/** Longest name, in characters. */
const maxName = 60

/** Longest icon, in characters of its URI. */
const maxIcon = 300_000

/**
 * Control and format characters, among them those that change the direction of text, line separators, and characters without a
 * meaning that fonts agree on.
 */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}]/gu

/** A name in one line of at most 60 characters; `otherwise` if nothing of it is left. */
export function cleanName(name: unknown, otherwise: string): string {
  if (typeof name !== 'string') return otherwise
  // Cut before it is searched, because a name may be of any length.
  const printable = name
    .slice(0, 20 * maxName)
    .replace(/\s/gu, ' ')
    .replace(unprintable, '')
  const characters = [...printable.replace(/ +/g, ' ').trim()]
  if (characters.length === 0) return otherwise
  return characters.length <= maxName ? characters.join('') : `${characters.slice(0, maxName - 1).join('')}…`
}

/** An icon, if it is a `data:` URI of an image and not oversized. In an `<img>`, no image runs scripts or loads anything. */
export function cleanIcon(icon: unknown): { readonly icon?: string } {
  if (typeof icon !== 'string' || icon.length > maxIcon) return {}
  const uri = icon.trim()
  return /^data:image\/(svg\+xml|png|webp|gif|jpeg)[;,]/i.test(uri) ? { icon: uri } : {}
}
