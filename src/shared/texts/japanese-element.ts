import type { ChooserTexts } from './chooser.ts'
import type { ElementTexts } from './english-element.ts'

/** The list of wallets in Japanese, by the glossary of `japanese.ts`. */
const list: ChooserTexts = {
  looking: 'ウォレットを探しています…',
  choose: 'ウォレットを選んでください。',
  none: 'このブラウザにはウォレットが見つかりません。',
  noneButOthers: 'ウォレットの拡張機能が見つかりません。次のものは使えます：',
  noneOnComputer:
    'このブラウザにウォレットをインストールしてページを再読み込みするか、スマートフォンのウォレットを使ってください。',
  noneOnPhone: 'ウォレットアプリのブラウザでこのページを開いてください。',
  noWallet: 'ウォレットを持っていません',
  getWallet:
    'ウォレットは、あなたの鍵を保管し、代わりに署名する無料のアプリです。次のどれかをインストールして、このページを再読み込みしてください。',
  list: 'ウォレット',
  elsewhere: '専用のサイトが開きます',
  demo: 'お試し用です。本物ではありません',
  apps: 'ウォレットアプリで開く',
  openIn: '{name}で開く',
  opening: 'お待ちください…',
  openAgain: 'アプリが開かない場合は、もう一度タップしてください。インストールされていない可能性があります。',
  openFailed: '問題が発生しました。再度お試しください。',
}

/** The sign-in on this device in Japanese, with the list of wallets. */
const wallets: ElementTexts['wallets'] = {
  ...list,
  asking: '{wallet}で確認してください。',
  verifying: 'お待ちください。',
  declined: 'ウォレットで拒否しました。もう一度試すには、ウォレットを選んでください。',
  closed: 'ウォレットが応答せずに閉じました。もう一度試すには、ウォレットを選んでください。',
  blocked:
    'ブラウザがウォレットのウィンドウをブロックしました。このサイトのポップアップを許可して、もう一度ウォレットを選んでください。',
  answerFirst:
    'ウォレットに別のリクエストが表示されています。先にそちらに答えてから、もう一度ウォレットを選んでください。',
  switched:
    'ウォレットのアカウントまたはネットワークが変わりました。新しいほうでログインするには、もう一度ウォレットを選んでください。',
  walletFailed: 'ウォレットが署名しませんでした。ロックが解除されているか確認して、もう一度選んでください。',
  notAccepted: 'このサイトではその種類のウォレットは使えません。別のウォレットを選んでください。',
  notAllowed: 'このウォレットではここにログインできません。',
  wrongNetwork:
    'このサイトでは、そのネットワークのスマートコントラクトウォレットは使えません。ネットワークを変えるか、別のウォレットを選んでください。',
  late: '時間がかかりすぎました。もう一度ウォレットを選んでください。',
  demoWallet: 'デモ用ウォレット',
}

/** The element in Japanese. */
export const texts: ElementTexts = {
  starting: 'コードを作成しています…',
  loading: 'お待ちください。',
  renewed: '新しいコードです。スマートフォンで読み取ってください。',
  created: 'スマートフォンでコードを読み取ってください。',
  claimed: 'スマートフォンでリクエストが開かれました。',
  waiting_user: '2つのコードが同じことを確認して、スマートフォンで承認してください。',
  approved: 'スマートフォンで承認されました。お待ちください。',
  finalized: 'ログインしました。',
  signed: '署名されました。',
  rejected: 'スマートフォンで拒否されました。',
  cancelled: 'キャンセルされました。',
  expired: 'コードの有効期限が切れました。',
  reconnecting: '接続が切れました。もう一度試しています…',
  failed: '問題が発生しました。',
  offline: 'ログインサービスに接続できません。接続を確認してください。',
  notTrusted: 'このサイトでは、ここでのログインが設定されていません。',
  notFound: 'このアドレスではログインサービスが応答しません。',
  busy: '試行回数が多すぎます。しばらくお待ちください。',
  qrLabel: 'スマートフォン用のQRコード',
  codeLabel: '確認コード',
  stepCamera: 'スマートフォンのカメラを開く',
  stepOpen: 'コードを読み取って、ページを開く',
  stepApprove: 'ウォレットで承認する',
  localOnly: 'このコードはスマートフォンでは開けません。リンク先の{host}は、このパソコンです。',
  answer: 'スマートフォンで続けてください。コードが表示されたら、ここに入力してください。',
  returnCode: '承認されました。スマートフォンに表示されたコードを入力してください。',
  returnCodeLabel: 'スマートフォンのコード',
  submit: '続ける',
  checking: 'コードを確認しています。',
  wrongCode: 'スマートフォンのコードと違います。あと{tries}回入力できます。',
  lastTry: 'スマートフォンのコードと違います。あと1回入力できます。',
  codesUsedUp: 'コードを3回間違えたため、リクエストはキャンセルされました。最初からやり直してください。',
  tooLate: '時間内にコードが入力されませんでした。最初からやり直してください。',
  stopped: 'スマートフォンでキャンセルされました。',
  keyLost: '途中でこのブラウザのデータが消去されました。最初からやり直してください。',
  expiresIn: '残り{time}',
  copy: 'リンクをコピー',
  copied: 'リンクをコピーしました。スマートフォンで開いてください。',
  copyFailed: 'リンクをコピーできませんでした。',
  cancel: 'キャンセル',
  renew: '新しいコードを表示',
  tryAgain: 'もう一度試す',
  thisDevice: 'このデバイスのウォレットを使う',
  otherDevice: '別のデバイスを使う',
  scanElsewhere: '別のデバイスでコードを読み取ってください。',
  walletsFailed: 'ウォレットを読み込めませんでした。再度お試しください。',
  wallets,
}
