/** Names of devices. */
export const device = {
  'device.browser-and-system': '{browser} on {system}',
  'device.system': 'A browser on {system}',
  'device.program': 'A program ({name})',
  'device.unknown': 'Unknown device',
} as const
