# Not run: it follows the documentation or the source of the application.
# Nextcloud's user_oidc, on its machine. Redirect URI: /apps/user_oidc/code. It can restrict the sign-in to groups.
php occ app:install user_oidc
php occ config:system:set user_oidc use_pkce --type=boolean --value=true
php occ user_oidc:provider Wallet \
  --clientid=nextcloud \
  --clientsecret='the same secret' \
  --discoveryuri=https://auth.example/.well-known/openid-configuration \
  --scope='openid profile groups' \
  --mapping-uid=sub \
  --mapping-display-name=name \
  --mapping-groups=groups \
  --group-provisioning=1
