import { expect, test } from 'vitest'
import { canonicalAddress } from '../../src/oidc/clients.ts'

test.each([
  [
    'https://mcp.example',
    'https://mcp.example/',
    'HTTPS://MCP.Example',
    'https://mcp.example:443',
    'https://mcp.example/.',
  ],
  ['https://mcp.example/mcp', 'https://mcp.example/%6dcp', 'https://mcp.example/x/../mcp', 'https://mcp.example/./mcp'],
  ['http://mcp.example:80/a%2Fb~c', 'http://mcp.example/a%2fb%7Ec'],
])('%s has one form in all its spellings', (...spellings) => {
  expect(new Set(spellings.map(canonicalAddress)).size).toBe(1)
  expect(canonicalAddress(spellings[0])).toMatch(/^https?:/)
})

test.each([
  ['https://mcp.example/mcp', 'https://mcp.example/mcp/', 'https://mcp.example/MCP', 'https://mcp.example//mcp'],
  [
    'https://mcp.example',
    'https://mcp.example?',
    'https://mcp.example.',
    'https://mcp.example:8443',
    'http://mcp.example',
  ],
  ['https://mcp.example/a/b', 'https://mcp.example/a%2Fb', 'https://mcp.example/a%252Fb'],
])('%s and others that look like it are different ones', (...addresses) => {
  expect(new Set(addresses.map(canonicalAddress)).size).toBe(addresses.length)
})

test.each([
  ...['https:mcp.example', 'https:///mcp.example', 'https://mcp.example\\mcp', 'https://mcp.example/a b'],
  ...[' https://mcp.example', 'https://mcp.example/%zz', 'https://mcp.example/#x', 'mcp.example', ''],
])('"%s", which only a browser would repair, has none', (text) => {
  expect(canonicalAddress(text)).toBeUndefined()
})
