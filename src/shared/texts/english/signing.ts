/** What a wallet's answer can lead to: notices of pages where a wallet signs, or may have signed. */
export const signing = {
  'notice.CONTRACT_WALLET_NEEDS_RPC':
    'This site doesn’t accept smart-contract wallets on that network. Use another wallet.',
  'notice.EVM_RPC_UNAVAILABLE': 'Your smart-contract wallet can’t be checked at the moment. Try again shortly.',
  'notice.contract-checks':
    'That was the third try with this wallet. Use another wallet, or get a new code on your computer.',
  'notice.WALLET_DECLINED': 'You declined in your wallet. Nothing was signed.',
  'notice.WALLET_CLOSED': 'The wallet closed without an answer. Nothing was signed.',
  'notice.WALLET_BLOCKED': 'Your browser blocked the wallet’s window. Allow pop-ups for this site, then try again.',
  'notice.WALLET_BUSY': 'Your wallet already shows a request. Answer it first, then try again.',
  'notice.WALLET_FAILED': 'The wallet failed. Nothing was approved.',
  'notice.WALLET_WRONG_KEY': 'The wallet used a different key from the one requested. Nothing was approved.',
  'notice.WRONG_WALLET': 'This request is for another wallet. Nothing was approved.',
  'notice.SIGNATURE_INVALID': 'The service didn’t accept the wallet’s signature. Nothing was approved.',
  'notice.ORIGIN_NOT_TRUSTED': 'This site isn’t set up for signing in here. Please tell the site.',
  'notice.LOGIN_REFUSED': 'This wallet isn’t allowed to sign in.',
  'notice.WALLET_TAKEN': 'This wallet already has an account here. Use one that hasn’t signed in here yet.',
  'notice.NETWORK_MISMATCH':
    'This phone isn’t on your computer’s network. Connect it to the same Wi-Fi, then try again.',
  'notice.NONCE_EXPIRED': 'That took too long. Try again.',
  'notice.NONCE_NOT_FOUND': 'That took too long. Try again.',
  'notice.SESSION_NOT_FRESH': 'You signed in too long ago to change your wallets.',

  'task.not-listed': 'This wallet isn’t on the list. Ask the operator of {app} to add it.',
  'task.account-unusable':
    'The account on your other device can’t be used right now. Nothing was added. Ask the operator of {app}.',
} as const
