/** All that commands have of the OpenID Connect issuer, without its library. */
export {
  adminCommand,
  countOpenClients,
  eraseUser,
  exportUser,
  issuerCheck,
  sessionEnds,
} from '../oidc/commands.ts'
