/** Texts of every page: times, notices of the service, and what a task shows. */
export const common = {
  'time.now': 'just now',
  'time.soon': 'less than a minute',

  'task.offline': 'You’re offline. This page continues when you’re back online.',
  'task.slow': 'The service is slow to answer. Still trying …',
  'task.retry': 'Try again',

  'notice.NETWORK': 'Can’t reach the sign-in service. Nothing is lost. Try again when you’re back online.',
  'notice.STORE_UNAVAILABLE': 'The service is temporarily unavailable. Nothing is lost. Try again shortly.',
  'notice.SERVER_BUSY': 'The service is busy. Nothing is lost. Try again shortly.',
  'notice.HOST_UNAVAILABLE': 'The application didn’t answer. Try again shortly.',
  'notice.RATE_LIMITED': 'Too many requests came from your network. Wait a moment, then try again.',
  'notice.INTERNAL': 'The service had an error. Try again.',

  'task.copy-address': 'Copy the address',
  'task.address-copied': 'Address copied',
  'task.failed': 'Something went wrong ({code}).',
} as const
