/** Texts of the page at an unknown path. */
export const notFound = {
  'not-found.title': 'Page not found',
  'not-found.text': 'There’s no page at this address on {host}. Check the link, or go to the start page.',
  'not-found.button': 'Go to the start page',
} as const
