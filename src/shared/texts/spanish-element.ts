import type { ChooserTexts } from './chooser.ts'
import type { ElementTexts } from './english-element.ts'

/** The list of wallets in Spanish, by the glossary of `spanish.ts`. */
const list: ChooserTexts = {
  looking: 'Buscando billeteras…',
  choose: 'Elige tu billetera.',
  none: 'No se encontró ninguna billetera en este navegador.',
  noneButOthers: 'No se encontró ninguna extensión de billetera. Aun así, puedes usar:',
  noneOnComputer:
    'Instala una en este navegador y vuelve a cargar la página, o usa una billetera que tengas en tu teléfono.',
  noneOnPhone: 'Abre esta página en el navegador de la aplicación de tu billetera.',
  noWallet: 'No tengo billetera',
  getWallet:
    'Una billetera es una aplicación gratuita que guarda tu clave y firma por ti: instala una de estas y vuelve a cargar esta página.',
  list: 'Billeteras',
  elsewhere: 'abre su propio sitio',
  demo: 'Para probar, no es una de verdad',
  apps: 'Abrir en la aplicación de tu billetera',
  openIn: 'Abrir en {name}',
  opening: 'Un momento…',
  openAgain: 'Si la aplicación no se abrió, toca otra vez. Puede que no esté instalada.',
  openFailed: 'Algo salió mal. Inténtalo de nuevo.',
}

/** The sign-in on this device in Spanish, with the list of wallets. */
const wallets: ElementTexts['wallets'] = {
  ...list,
  asking: 'Confirma en {wallet}.',
  verifying: 'Un momento.',
  declined: 'Rechazaste en tu billetera. Elígela para intentarlo de nuevo.',
  closed: 'La billetera se cerró sin responder. Elígela para intentarlo de nuevo.',
  blocked:
    'Tu navegador bloqueó la ventana de la billetera. Permite las ventanas emergentes de este sitio y vuelve a elegir la billetera.',
  answerFirst: 'Tu billetera ya muestra una solicitud. Respóndela primero y vuelve a elegir la billetera.',
  switched:
    'La cuenta o la red de la billetera ha cambiado. Vuelve a elegir la billetera para iniciar sesión con la nueva.',
  walletFailed: 'La billetera no firmó. Comprueba que esté desbloqueada y vuelve a elegirla.',
  notAccepted: 'Este sitio no acepta ese tipo de billetera. Elige otra.',
  notAllowed: 'Esta billetera no tiene permiso para iniciar sesión aquí.',
  wrongNetwork:
    'Este sitio no acepta billeteras de contrato inteligente en esa red. Cambia de red o elige otra billetera.',
  late: 'Tardó demasiado. Vuelve a elegir la billetera.',
  demoWallet: 'Billetera de prueba',
}

/** The element in Spanish. */
export const texts: ElementTexts = {
  starting: 'Creando un código…',
  loading: 'Un momento.',
  renewed: 'Aquí tienes otro código. Escanéalo con tu teléfono.',
  created: 'Escanea el código con tu teléfono.',
  claimed: 'Un teléfono abrió la solicitud.',
  waiting_user: 'Comprueba que los dos códigos coincidan y aprueba en tu teléfono.',
  approved: 'Aprobada en el teléfono. Un momento.',
  finalized: 'Has iniciado sesión.',
  signed: 'Firmado.',
  rejected: 'Rechazada en el teléfono.',
  cancelled: 'Cancelada.',
  expired: 'El código ha expirado.',
  reconnecting: 'Se perdió la conexión. Intentándolo de nuevo…',
  failed: 'Algo salió mal.',
  offline: 'No se puede contactar con el servicio de inicio de sesión. Comprueba tu conexión.',
  notTrusted: 'Este sitio no está configurado para iniciar sesión aquí.',
  notFound: 'En esta dirección no responde ningún servicio de inicio de sesión.',
  busy: 'Demasiados intentos. Espera un momento.',
  qrLabel: 'Código QR para tu teléfono',
  codeLabel: 'Código de confirmación',
  stepCamera: 'Abre la cámara de tu teléfono',
  stepOpen: 'Escanea el código y abre la página',
  stepApprove: 'Aprueba con tu billetera',
  localOnly: 'Un teléfono no puede abrir este código: lleva a {host}, que es este equipo.',
  answer: 'Continúa en tu teléfono. Si muestra un código, escríbelo aquí.',
  returnCode: 'Aprobada. Escribe el código que muestra tu teléfono.',
  returnCodeLabel: 'Código de tu teléfono',
  submit: 'Continuar',
  checking: 'Comprobando el código.',
  wrongCode: 'Ese no es el código de tu teléfono. Quedan {tries} intentos.',
  lastTry: 'Ese no es el código de tu teléfono. Queda 1 intento.',
  codesUsedUp: 'Tres códigos incorrectos: la solicitud se canceló. Empieza de nuevo.',
  tooLate: 'El código no se escribió a tiempo. Empieza de nuevo.',
  stopped: 'Cancelada en el teléfono.',
  keyLost: 'Mientras tanto se borraron los datos de este navegador. Empieza de nuevo.',
  expiresIn: 'Expira en {time}',
  copy: 'Copiar el enlace',
  copied: 'Enlace copiado. Ábrelo en tu teléfono.',
  copyFailed: 'No se pudo copiar el enlace.',
  cancel: 'Cancelar',
  renew: 'Mostrar otro código',
  tryAgain: 'Intentar de nuevo',
  thisDevice: 'Usar una billetera de este dispositivo',
  otherDevice: 'Usar otro dispositivo',
  scanElsewhere: 'Escanea el código con otro dispositivo.',
  walletsFailed: 'No se pudieron cargar las billeteras. Inténtalo de nuevo.',
  wallets,
}
