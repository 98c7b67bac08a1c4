<?php
// Roundcube 1.6. Redirect URI: /index.php/login/oauth. No PKCE, no e-mail address. The client has "grant_types":
// ["authorization_code", "refresh_token"], and beside the metadata "pkce": "optional" and "refresh_grace_seconds": 10:
// two requests of Roundcube can renew one token, and without the grace the second one ends the access to mail. So does
// a sign-out at the issuer, at once.
$config['oauth_provider'] = 'generic';
$config['oauth_provider_name'] = 'Wallet';
$config['oauth_client_id'] = 'roundcube';
$config['oauth_client_secret'] = 'the-same-secret';
$config['oauth_auth_uri'] = 'https://auth.example/api/auth/oidc/authorize';
$config['oauth_token_uri'] = 'https://auth.example/api/auth/oidc/token';
$config['oauth_scope'] = 'openid';
$config['oauth_identity_fields'] = ['sub'];
$config['login_lc'] = 0;
