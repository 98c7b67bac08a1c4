# oidc-agent 4.2, with a client for devices without a secret (docs/terminals.md).
# Sets an account up by a code of a device, refreshes twice, and writes both access tokens.
set -u
eval "$(oidc-agent)" >/dev/null
trap 'oidc-agent --kill >/dev/null 2>&1' EXIT
export OIDC_ENCRYPTION_PW=password
oidc-gen --manual --issuer="$ISSUER" --client-id=agent --client-secret= --scope="$SCOPE" --flow=device --cert-path="$CA" \
  --device-authorization-endpoint="$ISSUER/api/auth/oidc/device/auth" --redirect-uri= --pw-env --no-url-call \
  --confirm-default --prompt=none tulip </dev/null 2>&1
echo "token $(oidc-token --force-new tulip 2>&1)"
# Longer than an access token lasts.
echo "token $(oidc-token --time=100000 tulip 2>&1)"
