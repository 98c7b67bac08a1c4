# Not run: it follows the documentation or the source of the provider. Instance or organization settings, Identity
# Providers, Generic OIDC; or this call of its API. The first redirect URI is that of its newer login, the second that
# of the older one. Leave automatic linking (`autoLinking`) off. Zitadel asks new users for a name and an e-mail
# address, which a wallet doesn't have: name them in the people file, or let users fill them in. Without configured
# scopes, it asks for openid profile email phone, and the issuer ignores phone.
# It sends the configured scopes, PKCE (S256) if configured, no nonce, prompt=select_account or in its place the
# application's login_hint; authenticates by Basic; reads ID token and userinfo.
curl -X POST https://zitadel.example/admin/v1/idps/generic_oidc -H "authorization: Bearer $PAT" \
  -H 'content-type: application/json' -d '{
    "name": "Wallet",
    "issuer": "https://auth.example",
    "clientId": "zitadel",
    "clientSecret": "the same secret",
    "scopes": ["openid", "profile"],
    "isIdTokenMapping": true,
    "usePkce": true,
    "providerOptions": { "isCreationAllowed": true, "isAutoCreation": true, "isLinkingAllowed": true }
  }'
