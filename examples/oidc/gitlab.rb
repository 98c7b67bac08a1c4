# Not run: it follows the documentation or the source of the application.
# /etc/gitlab/gitlab.rb, then `gitlab-ctl reconfigure`. Redirect URI: /users/auth/openid_connect/callback.
# It must have an e-mail address. `auto_link_user` stays off. New users wait for an administrator's approval
# (omniauth_block_auto_created_users). Groups are in Premium.
gitlab_rails['omniauth_allow_single_sign_on'] = ['openid_connect']
gitlab_rails['omniauth_block_auto_created_users'] = true
gitlab_rails['omniauth_providers'] = [{
  name: 'openid_connect',
  label: 'Wallet',
  args: {
    name: 'openid_connect',
    scope: ['openid', 'profile', 'email', 'groups'],
    response_type: 'code',
    issuer: 'https://auth.example',
    discovery: true,
    client_auth_method: 'basic',
    uid_field: 'sub',
    pkce: true,
    client_options: {
      identifier: 'gitlab',
      secret: 'the same secret',
      redirect_uri: 'https://gitlab.example/users/auth/openid_connect/callback'
    }
  }
}]
