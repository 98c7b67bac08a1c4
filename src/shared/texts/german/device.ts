import type { device as english } from '../english/device.ts'

export const device: Readonly<Record<keyof typeof english, string>> = {
  'device.browser-and-system': '{browser} auf {system}',
  'device.system': 'Ein Browser auf {system}',
  'device.program': 'Ein Programm ({name})',
  'device.unknown': 'Unbekanntes Gerät',
}
