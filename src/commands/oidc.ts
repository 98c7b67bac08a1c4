/** All that commands have of the OpenID Connect issuer, without its library. */
export {
  adminCommand,
  begunKeys,
  countOpenClients,
  eraseUser,
  exportUser,
  issuerCheck,
  sessionEnds,
  sessionKeys,
} from '../oidc/commands.ts'
