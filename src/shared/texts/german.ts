import { germanTexts as chooserTexts } from './chooser.ts'
import { english } from './english.ts'
import { germanTexts } from './german-element.ts'
import type { TextKey, Texts } from './page-texts.ts'

/** The texts of the approval page and of the sign-in page in German. */
export const german: Texts = {
  'page.title': 'Anfrage prüfen',

  'start.title': 'Eine Anfrage wartet auf dich',
  'start.text': 'Prüfe die Angaben, bevor du etwas bestätigst.',
  'start.button': 'Anfrage prüfen',
  'start.hint': 'Mach nur weiter, wenn du den Code gerade von deinem eigenen Computer gescannt hast.',
  'start.hint.link': 'Mach nur weiter, wenn du das gerade auf einem anderen Gerät von dir begonnen hast.',

  'continue.eyebrow': 'Aus einem anderen Browser',
  'continue.title': 'Die Anfrage hier fortsetzen?',
  'continue.text':
    'Du hast sie in einem anderen Browser geöffnet. Wenn du hier weitermachst, kannst du sie dort nur noch abbrechen.',
  'continue.button': 'Hier fortsetzen',
  'continue.hint': 'Mach nur weiter, wenn du diese Seite gerade selbst aus deinem anderen Browser geöffnet hast.',
  'continue.done': 'Fortgesetzt aus einem anderen Browser',

  'review.login.title': 'Auf einem anderen Gerät anmelden?',
  'review.login.gives': 'Wer diesen Computer benutzt, ist dann mit deinem Konto angemeldet.',
  'review.sign.title': 'Mit deiner Wallet signieren?',
  'review.sign.gives': 'Der Computer bekommt die Signatur deiner Wallet.',
  'review.link.title': 'Deine Wallet zu einem Konto hinzufügen?',
  'review.link.gives':
    'Diese Wallet zum Konto {account} bei {origin} hinzufügen? Wenn du dich danach mit ihr anmeldest, öffnet sich dieses Konto. Mach nur weiter, wenn es deins ist.',
  'review.inbox.title': 'Diese Anfrage bestätigen?',
  'review.inbox.gives': '{host} bekommt die Signatur deiner Wallet, genau für das, was du hier siehst.',
  'review.inbox.wrong-wallet':
    'Nimm eine andere Wallet deines Kontos. Eine, die du weniger als 24 Stunden vor der Anfrage hinzugefügt hast, zählt nicht. Es wurde nichts bestätigt.',
  'review.asked-by': 'Angefragt von {name}',
  'review.asks': 'Anfrage von',
  'review.unverified': 'Nicht geprüft: Warst du gerade auf dieser Website?',
  'review.says.computer': 'Nachricht der Website:',
  'review.says.site': 'Nachricht von {host}:',
  'review.more': 'Mehr anzeigen',
  'review.less': 'Weniger anzeigen',
  'review.wallet': 'Signiert mit',
  'review.wallet.expected': 'Nur diese Wallet',
  'review.demo': 'Demo-Wallet: zum Ausprobieren, keine echte. Ihr Schlüssel liegt ungeschützt in diesem Browser.',
  'review.details': 'Der genaue Text, der signiert wird',
  'review.details.ip': 'IP-Adresse',
  'review.details.browser': 'Browser',
  'review.details.hash': 'Hash des Inhalts',
  'review.details.nonce': 'Einmalwert',
  'review.details.address': 'Adresse der Wallet',
  'review.approve': 'Bestätigen',
  'review.decline': 'Ablehnen',
  'review.expires': 'Läuft in {time} ab',
  'review.expires.signing': 'Deine Wallet hat noch {time}',

  'wallet.choose': 'Wallet wählen',
  'wallet.apps': 'In deiner Wallet fortsetzen',
  'wallet.use': 'Weiter mit {wallet}',
  'wallet.other': 'Ändern',
  'wallet.another': 'Andere Wallet wählen',
  'wallet.for-another': 'Diese Anfrage ist für eine andere Wallet als {wallet}.',
  'wallet.looking': 'Suche nach Wallets …',
  'wallet.none': 'In diesem Browser wurde keine Wallet gefunden.',
  'wallet.none.others': 'Keine Wallet-Erweiterung gefunden. Du kannst trotzdem verwenden:',
  'wallet.none.kind': 'In diesem Browser wurde keine Wallet der verlangten Art {kind} gefunden.',
  'wallet.none.phone': 'Mach im Browser deiner Wallet-App weiter: Tippe auf „In anderem Browser öffnen“.',
  'wallet.none.computer': 'Verwende einen Browser mit Wallet: Tippe auf „In anderem Browser öffnen“.',
  'wallet.none.account': 'Öffne diese Seite in einem Browser mit deiner anderen Wallet.',
  'wallet.list': 'Liste der Wallets',
  'wallet.elsewhere': 'öffnet ihre eigene Website',
  'wallet.demo': 'Demo-Wallet',
  'wallet.demo.about': 'Zum Testen, keine echte',
  'wallet.window': '{wallet} öffnet sich, wenn du bestätigst. Wähle dort die Adresse.',
  'wallet.asked': 'Bestätige in {wallet}.',

  'account.title': 'Dein Konto',
  'account.back': 'Zurück zu {app}',
  'account.sign-out': 'Abmelden',
  'account.wallets': 'Deine Wallets',
  'account.second':
    'Füge eine zweite Wallet hinzu. Wenn du deine einzige verlierst, kannst du dich nicht mehr anmelden.',
  'account.second.elsewhere':
    'Füge eine zweite Wallet hinzu. Wenn du deine einzige verlierst, kannst du dich nicht mehr anmelden. Melde dich dazu auf diesem Gerät mit einer Wallet an, oder öffne diese Seite auf deinem Handy.',
  'account.add': 'Wallet hinzufügen',
  'account.link': 'Wallet eines anderen Geräts hinzufügen',
  'account.link.created': 'Scanne diesen Code auf dem Gerät mit der anderen Wallet, oder öffne dort den Link.',
  'account.link.stepCamera': 'Code scannen oder dir den Link schicken',
  'account.link.stepOpen': 'Dort prüfen, welches Konto angezeigt wird',
  'account.link.stepApprove': 'Dort mit der Wallet bestätigen',
  'account.link.claimed': 'Das andere Gerät hat die Anfrage geöffnet.',
  'account.link.answer': 'Mach auf dem anderen Gerät weiter. Es zeigt dann einen Code, den du hier eingibst.',
  'account.link.returnCode':
    '{address} hat geantwortet. Ist das deine Wallet, dann gib den Code ein, den ihr Gerät zeigt.',
  'account.link.returnCodeLabel': 'Code auf dem anderen Gerät',
  'account.link.rejected': 'Auf dem anderen Gerät abgelehnt.',
  'account.link.stopped': 'Auf dem anderen Gerät abgebrochen.',
  'account.link.wrongCode': 'Das ist nicht der Code auf dem anderen Gerät. Noch {tries} Versuche.',
  'account.link.lastTry': 'Das ist nicht der Code auf dem anderen Gerät. Noch 1 Versuch.',
  'account.link.copied': 'Link kopiert. Öffne ihn auf dem anderen Gerät.',
  'account.link.qrLabel': 'QR-Code für das andere Gerät',
  'account.link.finalized': 'Die Wallet ist hinzugefügt. Melde dich zur Probe einmal mit ihr an.',
  'account.link.share': 'Link senden',
  'account.add.later':
    'Eine Wallet, die du jetzt hinzufügst, kann Anfragen anderer nur bestätigen, wenn sie frühestens 24 Stunden später beginnen.',
  'account.requests': 'Anfragen',
  'account.requests.count': 'Für dich: {count}',
  'account.requests.none': 'Nichts wartet auf dich.',
  'account.requests.open': 'Anfragen öffnen',
  'account.confirm': 'Bestätige in {wallet}.',
  'account.remove': 'Entfernen',
  'account.this-wallet': 'aktuell verwendet',
  'account.sessions': 'Wo du angemeldet bist',
  'account.this-device': 'dieser Browser',
  'account.this-computer': 'dieser Computer',
  'account.end': 'Abmelden',
  'account.end-others': 'Überall sonst abmelden',
  'account.since': 'Seit {time}',
  'account.used': 'Zuletzt benutzt: {time}',
  'account.computers': 'Gemerkte Computer',
  'account.computers.text': 'Hier ist 90 Tage lang kein Code nötig.',
  'account.forget': 'Vergessen',
  'account.apps': 'Verbundene Anwendungen',
  'account.apps.text': 'Sie melden dich mit deiner Wallet an.',
  'account.disconnect': 'Trennen',
  'account.again': 'Neu anmelden',
  'inbox.title': 'Deine Anfragen',
  'inbox.count': 'Für dich: {count}',
  'inbox.account': 'Dein Konto',
  'inbox.all': 'Alle deine Anfragen',
  'inbox.asked': 'Angefragt von {name}',
  'inbox.untitled': 'Eine Anfrage ohne Titel',
  'inbox.expires': 'Läuft in {time} ab',
  'inbox.review': 'Prüfen',
  'inbox.review.request': 'Anfrage prüfen',
  'inbox.none': 'Nichts wartet auf dich.',
  'inbox.none.text': 'Neue Anfragen erscheinen hier von selbst.',
  'inbox.over.title': 'Diese Anfrage ist vorbei',
  'inbox.over.text':
    'Sie wurde beantwortet oder zurückgezogen, ist abgelaufen oder für ein anderes Konto. Du bist mit {address} angemeldet.',
  'inbox.over.other': 'Andere Wallet verwenden',
  'inbox.elsewhere.title': 'Melde dich hier an, um deine Anfragen zu sehen',
  'inbox.elsewhere.text':
    'Ein Handy hat diesen Browser angemeldet. Anfragen siehst du nur, wo du dich mit einer Wallet auf dem Gerät selbst angemeldet hast.',
  'inbox.signed-out.title': 'Du bist abgemeldet',
  'inbox.signed-out.text': 'Melde dich wieder an, um deine Anfragen zu sehen. Nichts ist verloren.',
  'inbox.sign-in': 'Mit einer Wallet anmelden',
  'demo.title': 'Mit einer Wallet anmelden',
  'demo.text': 'Drei Dinge zum Ausprobieren. Jedes geht in deiner eigenen Anwendung genauso.',
  'demo.in': 'Angemeldet',
  'demo.out': 'Nicht angemeldet',
  'demo.ended':
    'Du bist abgemeldet: Diese Sitzung wurde auf dem Handy beendet, das sie bestätigt hat, oder von einer anderen deiner Sitzungen aus.',
  'demo.wallet': 'Deine Wallet',
  'demo.phone.title': 'Mit dem Handy anmelden',
  'demo.phone.text':
    'Funktioniert an jedem Computer: Scanne den Code mit der Kamera deines Handys und bestätige mit der Wallet dort. Diese Seite meldet sich dann von selbst an oder fragt nach dem Code, den dein Handy zeigt.',
  'demo.phone.text.here':
    'Öffne die Anfrage in einem anderen Tab dieses Handys und bestätige mit der Wallet dort. Diese Seite meldet sich dann von selbst an oder fragt nach dem Code, den der andere Tab zeigt.',
  'demo.phone.button': 'Code anzeigen',
  'demo.phone.button.here': 'Link des Codes anzeigen',
  'demo.phone.created.here': 'Öffne die Anfrage auf diesem Handy.',
  'demo.phone.order': 'Bei der Demo anmelden',
  'demo.device.title': 'Auf diesem Gerät anmelden',
  'demo.device.text': 'Eine Signatur, kein Passwort: Die Wallet signiert eine einmalige Nachricht für diese Website.',
  'demo.device.button': 'Anmelden',
  'demo.device.another': 'Andere Wallet',
  'demo.device.new': 'Als anderer Nutzer testen',
  'demo.sign.title': 'Eine Signatur anfordern',
  'demo.sign.text': 'Du bekommst einen Nachweis, den jeder später prüfen kann, ohne diesen Dienst.',
  'demo.sign.order.title': 'Titel',
  'demo.sign.order.title.sample': 'Rechnung 1042 freigeben',
  'demo.sign.order.summary': 'Zusammenfassung',
  'demo.sign.order.summary.sample': '250 NIM an die Grüne Bäckerei für zwölf Brote zahlen.',
  'demo.sign.order.payload': 'Inhalt als JSON',
  'demo.sign.not-json': 'Das ist kein JSON.',
  'demo.sign.button': 'Handy fragen',
  'demo.proof.title': 'Dein Nachweis',
  'demo.proof.valid': 'Auf dieser Seite geprüft: Die Signatur ist gültig.',
  'demo.proof.invalid': 'Die Signatur ist nicht gültig.',
  'demo.proof.other':
    'Der Dienst hat die Signatur geprüft, sie ist gültig. Diese Seite selbst prüft nur Signaturen von Nimiq und von einfachen Ed25519-Schlüsseln.',
  'demo.proof.details': 'Was signiert wurde, und die Signatur',
  'demo.proof.key': 'Öffentlicher Schlüssel',
  'demo.proof.signature': 'Signatur',
  'demo.proof.payload': 'Inhalt',
  'demo.session.user': 'Nutzer',
  'demo.session.since': 'Angemeldet',
  'demo.session.until': 'Gültig bis',
  'demo.session.phone': '{time}, mit einem Handy',
  'demo.session.device': '{time}, auf diesem Gerät',
  'demo.session.while-used': '{time}, oder länger, solange du sie verwendest',
  'demo.session.text':
    'Die Sitzung steht in einem Cookie, das Skripte nicht lesen können. Lädst du die Seite neu, bist du noch angemeldet.',
  'demo.footer':
    'Die Signatur einer Wallet beweist, dass jemand einen Schlüssel besitzt, und sonst nichts. Was diese Person darf, entscheidet die Anwendung.',

  'issuer.title': 'Bei {client} anmelden?',
  'issuer.document': 'Sie kommt von {host} (nicht überprüft).',
  'issuer.host': 'Danach geht es weiter zu {host}.',
  'issuer.device': 'Danach geht es weiter zu einer Anwendung auf diesem Gerät.',
  'issuer.wallet': 'Wallet-Adresse',
  'issuer.other-wallet': 'Andere Wallet verwenden',
  'issuer.gets': 'Damit kann {client}:',
  'issuer.scope.openid': 'Dich wiedererkennen',
  'issuer.scope.offline_access': '90 Tage lang verbunden bleiben, auch nach deiner Abmeldung',
  'issuer.scope.profile': 'Die Adresse deiner Wallet sehen',
  'issuer.scope.wallet': 'Alle deine Wallets sehen',
  'issuer.scope.email': 'Deine E-Mail-Adresse sehen',
  'issuer.scope.groups': 'Deine Gruppen sehen',
  'issuer.scope.at': '{scope} bei {resource}',
  'issuer.allow': 'Erlauben',
  'issuer.decline': 'Ablehnen',
  'issuer.old': 'Diese Seite ist veraltet. Lade sie neu.',
  'issuer.opened.title': 'Weiter in {client}',
  'issuer.opened.text': 'Die Anwendung öffnet sich auf diesem Gerät. Du kannst diese Seite schließen.',
  'issuer.opened.link': '{client} noch einmal öffnen',
  'issuer.declined.title': 'Abgelehnt',
  'issuer.declined.text': 'Es wurde nichts an {client} weitergegeben. Du kannst diese Seite schließen.',
  'issuer.not-for-account.title': 'Nicht für dieses Konto',
  'issuer.not-for-account.text':
    '{client} ist für diese Wallet nicht freigegeben. Bitte den Betreiber, dich aufzunehmen.',
  'issuer.logout.title': 'Abmelden?',
  'issuer.logout.text': 'In verbundenen Anwendungen wirst du auch abgemeldet.',
  'issuer.logout.cancel': 'Abbrechen',
  'issuer.logout.button': 'Abmelden',
  'issuer.signed-out': 'Du bist abgemeldet',
  'issuer.signed-out.text': 'Du bist bei {site} und in verbundenen Anwendungen abgemeldet.',
  'issuer.over.title': 'Diese Anmeldung ist vorbei',
  'issuer.over.text':
    'Sie hat zu lange gedauert, wurde schon verwendet oder begann in einem anderen Browser. Geh zurück zur Anwendung und melde dich noch einmal an.',
  'issuer.error.title': 'Das hat nicht geklappt',
  'issuer.error.text': 'Die Anfrage von {client} ist ungültig oder abgelaufen. Geh zurück und versuche es noch einmal.',
  'issuer.error.unknown':
    'Die Anfrage der Anwendung ist ungültig oder abgelaufen. Geh zurück und versuche es noch einmal.',
  'issuer.unreachable.text': '{host} ist nicht erreichbar. Von dort kommt diese Anwendung.',
  'issuer.back-to': 'Zurück zu {client}',
  'issuer.back': 'Zurück',
  'issuer.sign-in': 'Wieder anmelden',
  'issuer.account': 'Zu deinem Konto',
  'issuer.code.title': 'An einem Gerät anmelden',
  'issuer.code.text': 'Gib den Code ein, den dein Terminal oder Gerät anzeigt.',
  'issuer.code.label': 'Code auf dem Gerät',
  'issuer.code.button': 'Weiter',
  'issuer.code.hint':
    'Gib nur einen Code ein, den ein eigenes Gerät anzeigt, nie einen, den du geschickt bekommen hast.',
  'issuer.code.wrong': 'Kein Gerät wartet mit diesem Code. Prüfe ihn oder beginne am Gerät von vorn.',
  'issuer.code.elsewhere':
    'Dieser Browser ist nicht im Netz des Geräts. Verbinde beide mit demselben und versuche es noch einmal.',
  'issuer.code.consent': 'Bei {client} an einem Gerät anmelden?',
  'issuer.code.place': 'Das Gerät, das diesen Code anzeigt, wird in deinem Namen angemeldet.',
  'issuer.code.program': 'Gestartet von',
  'issuer.code.network': 'Aus',
  'issuer.code.near': 'im selben Netz wie dieser Browser',
  'issuer.code.far': 'nicht im Netz dieses Browsers',
  'issuer.code.question': 'Hast du das an einem eigenen Gerät gestartet?',
  'issuer.code.warning':
    'Wenn dir jemand diesen Code geschickt oder genannt hat, lehne ab. Sonst ist diese Person als du angemeldet.',
  'issuer.code.direct.title': 'Melde dich an diesem Gerät an',
  'issuer.code.direct.text':
    'Du hast dich hier mit einem anderen Gerät angemeldet. Für {client} brauchst du eine Wallet an diesem.',
  'issuer.code.done.title': 'Dein Gerät ist angemeldet',
  'issuer.code.done.text': '{client} macht von selbst weiter. Du kannst diese Seite schließen.',

  'not-found.title': 'Seite nicht gefunden',
  'not-found.text': 'Unter dieser Adresse gibt es auf {host} keine Seite. Prüfe den Link oder geh zur Startseite.',
  'not-found.button': 'Zur Startseite',

  'sign-in.title': 'Anmelden',
  'sign-in.text': 'Ohne Passwort: Deine Wallet signiert eine einmalige Nachricht für {host}.',
  'sign-in.wanted': 'Verwende die Wallet {address}.',
  'sign-in.wanted.other': 'Verlangt ist eine andere Wallet: {address}.',
  'sign-in.done.title': 'Du bist angemeldet',
  'sign-in.done.wallet': 'Wallet-Adresse',
  'sign-in.done.continue': 'Weiter',
  'sign-in.done.other': 'Abmelden und andere Wallet verwenden',
  'sign-in.not-kept':
    'Du warst angemeldet, aber dieser Browser hat die Sitzung nicht behalten. Öffne die Seite unter ihrer https-Adresse und erlaube Cookies für {host}.',
  'sign-in.lan': 'Zum Testen mit einem Handy starte mit {command}',
  'sign-in.open-here': 'Hier öffnen',
  'sign-in.open-here.hint': 'In einem neuen Tab. Komm danach in diesen zurück.',
  'sign-in.link': 'Anmeldelink',

  ...named('sign-in.order.', germanTexts),

  ...named('sign-in.wallet.', { ...chooserTexts, ...germanTexts.wallets }),

  'time.now': 'gerade eben',
  'time.soon': 'weniger als einer Minute',
  'network.same': 'Im selben Netz wie dieses Handy',
  'network.other': 'Nicht im Netz dieses Handys',

  'device.browser-and-system': '{browser} auf {system}',
  'device.system': 'Ein Browser auf {system}',
  'device.program': 'Ein Programm ({name})',
  'device.unknown': 'Unbekanntes Gerät',

  'payload.title': 'Was du signierst',
  'payload.empty': 'leer',
  'payload.none': 'keine Einträge',
  'payload.no-name': 'ohne Namen',

  'compare.question': 'Zeigt dein Computer diesen Code?',
  'compare.hint': 'Zeigt er einen anderen oder keinen Code, dann bestätige nicht.',

  'code.before': 'Danach bekommst du einen Code für {origin}. Gib ihn nicht weiter.',
  'code.eyebrow': 'Auf diesem Gerät bestätigt',
  'code.title': 'Gib diesen Code nur auf {origin} ein',
  'code.hint': 'Gib diesen Code nicht weiter. Warst du das nicht? Brich ab.',
  'code.good-for': 'Läuft in {time} ab',
  'code.stop': 'Abbrechen',

  'remember.label': 'Diesen Computer merken',
  'remember.hint': '90 Tage lang kein Code nötig. Nur wenn es dein eigener ist.',

  'hand-over.button': 'In anderem Browser öffnen',
  'hand-over.label': 'Öffne diesen Link im anderen Browser',
  'hand-over.hint':
    'Der Link gilt einmal und nur eine Minute. Gib ihn nicht weiter: Wer ihn öffnet, kann für dich bestätigen.',
  'hand-over.copy': 'Link kopieren',
  'hand-over.copied': 'Kopiert',
  'hand-over.share': 'Teilen',

  'outcome.waiting': 'Warte auf deinen Computer …',
  'outcome.waiting.link': 'Warte auf dein anderes Gerät …',
  'outcome.offline': 'Du bist offline. Sobald du wieder online bist, steht hier, was dein Computer gemacht hat.',
  'outcome.approved.title': 'Bestätigt',
  'outcome.approved.text': 'Auf deinem Computer geht es von selbst weiter. Du kannst diese Seite schließen.',
  'outcome.approved.not-me': 'Warst du das nicht? Abbrechen',
  'outcome.login.title': 'Dein Computer ist angemeldet',
  'outcome.login.text': 'Er ist mit deinem Konto angemeldet. Du kannst diese Seite schließen.',
  'outcome.login.not-me': 'Warst du das nicht? Computer abmelden',
  'outcome.sign.title': 'Dein Computer hat die Signatur',
  'outcome.sign.text': 'Die Website hat die Signatur deiner Wallet. Du kannst diese Seite schließen.',
  'outcome.link.title': 'Deine Wallet ist hinzugefügt',
  'outcome.link.text':
    'Ab jetzt öffnet sie dieses Konto. Melde dich zur Probe einmal mit ihr an. Du kannst diese Seite schließen.',
  'outcome.link.not-me': 'Nicht dein Konto? Wallet entfernen',
  'outcome.inbox.approved.text':
    'Die Website, die gefragt hat, macht von selbst weiter. Du kannst diese Seite schließen.',
  'outcome.inbox.waiting': 'Warte auf die Website …',
  'outcome.inbox.title': 'Die Website hat deine Bestätigung',
  'outcome.inbox.text':
    'Sie hat die Signatur deiner Wallet für diese Anfrage bekommen. Du kannst diese Seite schließen.',
  'outcome.moved.title': 'In einem anderen Browser fortgesetzt',
  'outcome.moved.wallet': 'In deiner Wallet fortgesetzt',
  'outcome.moved.text': 'Beantworte die Anfrage dort. Hier kannst du sie nur noch abbrechen.',

  'ending.declined.title': 'Abgelehnt',
  'ending.declined.text': 'Es wurde nichts weitergegeben. Du kannst diese Seite schließen.',
  'ending.stopped.title': 'Abgebrochen',
  'ending.stopped.text': 'Es wurde nichts weitergegeben. Du kannst diese Seite schließen.',
  'ending.session-ended.title': 'Der Computer ist abgemeldet',
  'ending.session-ended.text': 'Er kann dein Konto nicht mehr verwenden. Du kannst diese Seite schließen.',
  'ending.session-gone.title': 'Die Sitzung war schon beendet',
  'ending.session-gone.text': 'Niemand ist angemeldet. Du kannst diese Seite schließen.',
  'ending.wallet-removed.title': 'Die Wallet ist entfernt',
  'ending.wallet-removed.text': 'Sie öffnet dieses Konto nicht mehr. Du kannst diese Seite schließen.',
  'ending.wallet-stays.title': 'Es wurde nichts entfernt',
  'ending.wallet-stays.text':
    'Die Wallet wurde nicht durch diese Anfrage hinzugefügt, oder sie ist die einzige dieses Kontos. Sieh im Konto nach deinen Wallets.',
  'ending.too-late.title': 'Das kannst du hier nicht mehr rückgängig machen',
  'ending.too-late.text': 'Ist es nicht dein Computer, melde dich auf deinem Gerät an und beende seine Sitzung dort.',
  'ending.signature-given.title': 'Zum Abbrechen ist es zu spät',
  'ending.signature-given.text':
    'Der Computer hat die Signatur schon. Ist es nicht deiner, sag der Website Bescheid, die gefragt hat.',
  'ending.wrong-return-codes.title': 'Drei falsche Codes wurden eingegeben',
  'ending.wrong-return-codes.text':
    'Die Anfrage wurde abgebrochen, und es wurde nichts weitergegeben. Warst du das nicht, hat es jemand anderes versucht. Hol dir am Computer einen neuen Code, um es noch einmal zu versuchen.',
  'ending.code-late.title': 'Der Code wurde nicht rechtzeitig eingegeben',
  'ending.code-late.text': 'Niemand ist angemeldet. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.not-finished.title': 'Dein Computer wurde nicht rechtzeitig fertig',
  'ending.not-finished.text':
    'Es wurde nichts weitergegeben. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.link-incomplete.title': 'Dieser Link ist unvollständig',
  'ending.link-incomplete.text':
    'Ein Teil des Links fehlt. Manche Apps kürzen Links. Scanne den Code am Computer mit der Kamera deines Handys und geh von dort weiter zu deiner Wallet.',
  'ending.link-used.title': 'Dieser Link wurde schon verwendet',
  'ending.link-used.text':
    'Er gilt einmal und nur eine Minute. Geh zurück in den anderen Browser und hol dir dort einen neuen.',
  'ending.expired.title': 'Diese Anfrage ist abgelaufen',
  'ending.expired.text': 'Es wurde nichts signiert. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.expired-signing.title': 'Die Anfrage lief ab, während deine Wallet signierte',
  'ending.expired-signing.text':
    'Es wurde nichts bestätigt. Fragt deine Wallet noch, dann lehne dort ab. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.not-found.title': 'Diese Anfrage ist vorbei',
  'ending.not-found.text':
    'Sie ist schon länger vorbei, oder es gab sie hier nie. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.cancelled.title': 'Auf deinem Computer abgebrochen',
  'ending.cancelled.text': 'Es ist nichts passiert. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.rejected.title': 'Diese Anfrage wurde abgelehnt',
  'ending.rejected.text':
    'Es wurde nichts weitergegeben. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.claimed.title': 'Diese Anfrage ist auf einem anderen Handy offen',
  'ending.claimed.text':
    'Oder in einem anderen Tab dieses Handys. Warst du das nicht, brich die Anfrage am Computer ab.',
  'ending.approved.title': 'Diese Anfrage wurde schon bestätigt',
  'ending.approved.text': 'Warst du das nicht, brich sie sofort am Computer ab.',
  'ending.finalized.title': 'Diese Anfrage ist erledigt',
  'ending.finalized.text':
    'Sie wurde bestätigt und verwendet. Warst du das nicht? Melde dich auf deinem Gerät an und beende die Sitzung dort.',
  'ending.token-invalid.title': 'Dieser Link ist ungültig',
  'ending.token-invalid.text': 'Er passt nicht zur Anfrage. Scanne den Code am Computer noch einmal.',
  'ending.inbox-expired.title': 'Diese Anfrage ist abgelaufen',
  'ending.inbox-expired.text':
    'Es wurde nichts bestätigt. Wird sie noch gebraucht, kann die Website noch einmal fragen.',
  'ending.inbox-expired-signing.title': 'Die Anfrage lief ab, während deine Wallet signierte',
  'ending.inbox-expired-signing.text': 'Es wurde nichts bestätigt. Fragt deine Wallet noch, lehne dort ab.',
  'ending.inbox-not-finished.title': 'Deine Bestätigung wurde nicht rechtzeitig verwendet',
  'ending.inbox-not-finished.text':
    'Die Website hat nicht weitergemacht. Wird sie noch gebraucht, kann die Website noch einmal fragen.',
  'ending.inbox-over.title': 'Diese Anfrage ist vorbei',
  'ending.inbox-over.text':
    'Sie wurde beantwortet oder zurückgezogen, ist abgelaufen oder für ein anderes Konto. Du kannst diese Seite schließen.',
  'ending.inbox-cancelled.title': 'Diese Anfrage wurde zurückgezogen',
  'ending.inbox-cancelled.text':
    'Die Website, die gefragt hat, braucht sie nicht mehr. Du kannst diese Seite schließen.',
  'ending.inbox-rejected.title': 'Diese Anfrage wurde abgelehnt',
  'ending.inbox-rejected.text':
    'Sie wurde in einem anderen Browser von dir abgelehnt. Du kannst diese Seite schließen.',
  'ending.inbox-approved.title': 'Diese Anfrage wurde schon bestätigt',
  'ending.inbox-approved.text':
    'Sie wurde mit einer Wallet deines Kontos bestätigt. Warst du das nicht, sag es der Website, die gefragt hat.',
  'ending.inbox-signed.title': 'Zum Abbrechen ist es zu spät',
  'ending.inbox-signed.text':
    'Die Website hat die Signatur schon. Wolltest du nicht bestätigen, sag es der Website, die gefragt hat.',
  'ending.inbox': 'Deine Anfragen',
  'ending.account': 'Konto öffnen',

  'task.offline': 'Du bist offline. Hier geht es weiter, sobald du wieder online bist.',
  'task.slow': 'Der Dienst antwortet langsam. Neuer Versuch …',
  'task.retry': 'Noch einmal versuchen',
  'notice.NETWORK':
    'Der Anmeldedienst ist nicht erreichbar. Nichts ist verloren. Versuche es, wenn du wieder online bist.',
  'notice.STORE_UNAVAILABLE':
    'Der Dienst ist gerade nicht verfügbar. Nichts ist verloren. Versuche es gleich noch einmal.',
  'notice.SERVER_BUSY': 'Der Dienst ist überlastet. Nichts ist verloren. Versuche es gleich noch einmal.',
  'notice.HOST_UNAVAILABLE': 'Die Anwendung hat nicht geantwortet. Versuche es gleich noch einmal.',
  'notice.CONTRACT_WALLET_NEEDS_RPC':
    'Diese Website nimmt keine Smart-Contract-Wallets in diesem Netzwerk an. Verwende eine andere Wallet.',
  'notice.EVM_RPC_UNAVAILABLE':
    'Deine Smart-Contract-Wallet lässt sich gerade nicht prüfen. Versuche es gleich noch einmal.',
  'notice.RATE_LIMITED': 'Aus deinem Netz kamen zu viele Anfragen. Warte einen Moment und versuche es noch einmal.',
  'notice.contract-checks':
    'Smart-Contract-Wallets werden für eine Anfrage höchstens dreimal geprüft. Verwende eine andere Wallet, oder hol dir am Computer einen neuen Code.',
  'notice.INTERNAL': 'Der Dienst hatte einen Fehler. Versuche es noch einmal.',
  'notice.WALLET_DECLINED': 'Du hast in deiner Wallet abgelehnt. Es wurde nichts signiert.',
  'notice.WALLET_CLOSED': 'Die Wallet wurde ohne Antwort geschlossen. Es wurde nichts signiert.',
  'notice.WALLET_BLOCKED':
    'Dein Browser hat das Fenster der Wallet blockiert. Erlaube Pop-ups für diese Website und versuche es noch einmal.',
  'notice.WALLET_BUSY':
    'Deine Wallet zeigt schon eine Anfrage. Beantworte zuerst diese Anfrage, dann versuche es noch einmal.',
  'notice.WALLET_FAILED': 'Die Wallet hatte einen Fehler. Es wurde nichts bestätigt.',
  'notice.WALLET_WRONG_KEY':
    'Die Wallet hat einen anderen Schlüssel als den verlangten verwendet. Es wurde nichts bestätigt.',
  'notice.WRONG_WALLET': 'Diese Anfrage ist für eine andere Wallet. Es wurde nichts bestätigt.',
  'notice.SIGNATURE_INVALID': 'Der Dienst hat die Signatur der Wallet nicht angenommen. Es wurde nichts bestätigt.',
  'notice.ORIGIN_NOT_TRUSTED':
    'Diese Website ist für die Anmeldung hier nicht eingerichtet. Bitte sag der Website Bescheid.',
  'notice.LOGIN_REFUSED': 'Diese Wallet darf sich nicht anmelden.',
  'notice.WALLET_TAKEN': 'Diese Wallet hat hier schon ein Konto. Nimm eine, die sich hier noch nicht angemeldet hat.',
  'notice.NETWORK_MISMATCH':
    'Dieses Handy ist nicht im Netz deines Computers. Verbinde es mit demselben WLAN und versuche es noch einmal.',
  'notice.NONCE_EXPIRED': 'Das hat zu lange gedauert. Versuche es noch einmal.',
  'notice.NONCE_NOT_FOUND': 'Das hat zu lange gedauert. Versuche es noch einmal.',
  'notice.SESSION_NOT_FRESH': 'Deine Anmeldung ist zu lange her, um deine Wallets zu ändern.',
  'task.not-listed': 'Diese Wallet steht nicht auf der Liste. Bitte den Betreiber von {app}, sie aufzunehmen.',
  'task.account-unusable':
    'Das Konto auf deinem anderen Gerät lässt sich gerade nicht verwenden. Es wurde nichts hinzugefügt. Frag den Betreiber von {app}.',
  'task.copy-address': 'Adresse kopieren',
  'task.address-copied': 'Adresse kopiert',
  'task.failed': 'Das hat nicht geklappt ({code}).',
}

/** Texts of the element under the names that the pages have for them. */
function named<Prefix extends string>(
  prefix: Prefix,
  texts: Readonly<Record<NameUnder<Prefix>, string>>,
): Pick<Texts, TextKey & `${Prefix}${string}`> {
  const names = Object.keys(english).filter((key) => key.startsWith(prefix))
  const textOf = (name: string): string => texts[name.slice(prefix.length) as NameUnder<Prefix>]
  return Object.fromEntries(names.map((name) => [name, textOf(name)])) as never
}

type NameUnder<Prefix extends string> = TextKey extends infer Key
  ? Key extends `${Prefix}${infer Name}`
    ? Name
    : never
  : never
