/** Texts that nobody may be sent to after a sign-in: some reader takes them for another origin. */
export const hostileReturnPaths: readonly string[] = [
  ...['//evil.example', '///evil.example', '//', '//any.invalid/welcome', 'https://evil.example'],
  ...['javascript:alert(1)', 'evil.example', '', '\\evil.example', '/\\evil.example', '/welcome\\here', '/search?q=\\'],
  ...['/a\\..\\\\evil.example', '/\t/evil.example', '/\n/evil.example', '\t//evil.example', ' //evil.example'],
  ...['/\u0000/evil.example', '/%2Fevil.example', '/%2f%2fevil.example', '/%5Cevil.example', '/%252Fevil.example'],
  ...['/%25252fevil.example', '/%09/evil.example', '/%2Fevil.example%', '/.//evil.example', '/..//evil.example'],
  ...['/a/..//evil.example', '/%2e%2e//evil.example', '/%2e%2fevil.example/%2e%2e/%2fevil.example'],
  ...['/%252e//evil.example', '/welcome%0d%0aSet-Cookie:a=b', '/\u202ewelcome'],
]

/** Paths that a user can be sent to. */
export const returnPaths: readonly string[] = [
  ...['/', '/welcome', '/a/b/../c', '/search?q=100%25&next=%2F%2Fhere%5C#part', '/100%25', '/caf%C3%A9/é', '/a//b'],
  ...['/@evil.example', '/:80/x'],
]
