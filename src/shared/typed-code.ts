/** Longest text that is read, in UTF-16 code units. */
const maxLength = 200

/**
 * A code as a person typed or pasted it, without what keyboards and copying add: full width and other forms of its
 * characters are plain ones (NFKC), digits of any script are 0 to 9, and all but letters and digits is dropped. Empty
 * for a text of more than 200 characters: NFKC sorts a run of marks in square time.
 */
export function typedCode(text: string): string {
  if (text.length > maxLength) return ''
  return text
    .normalize('NFKC')
    .replace(/\p{Nd}/gu, asciiDigit)
    .replace(/[^\p{L}\p{N}]/gu, '')
}

/** Unicode has the ten digits of a script one after the other, from zero (The Unicode Standard, 4.6). */
function asciiDigit(digit: string): string {
  const point = digit.codePointAt(0) as number
  let zero = point
  while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--
  return String((point - zero) % 10)
}
