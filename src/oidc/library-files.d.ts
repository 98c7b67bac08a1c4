/** Files of the library without types of their own; {@link Library} has those of what they export. */
declare module 'oidc-provider/lib/*'
