"""An application that signs a user in with Authlib. Writes the address to open, reads the answer, writes what it got."""

import json
import sys

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey, JsonWebToken
from authlib.oidc.core import CodeIDToken

issuer, client_id, client_secret, redirect_uri = sys.argv[1:]
provider = requests.get(issuer + '/.well-known/openid-configuration').json()
session = OAuth2Session(
    client_id,
    client_secret,
    scope='openid profile',
    redirect_uri=redirect_uri,
    code_challenge_method='S256',
)
verifier, nonce = generate_token(48), generate_token()
address, state = session.create_authorization_url(
    provider['authorization_endpoint'], code_verifier=verifier, nonce=nonce
)
print(address, flush=True)

token = session.fetch_token(
    provider['token_endpoint'],
    authorization_response=sys.stdin.readline().strip(),
    code_verifier=verifier,
    state=state,
)
claims = JsonWebToken(['RS256']).decode(
    token['id_token'],
    JsonWebKey.import_key_set(requests.get(provider['jwks_uri']).json()),
    claims_cls=CodeIDToken,
    claims_options={'iss': {'value': issuer}, 'aud': {'value': client_id}},
    claims_params={'nonce': nonce, 'client_id': client_id, 'access_token': token['access_token']},
)
claims.validate()
userinfo = session.get(provider['userinfo_endpoint']).json()

next_token = session.refresh_token(provider['token_endpoint'], refresh_token=token['refresh_token'])


def introspect(text):
    return session.introspect_token(provider['introspection_endpoint'], token=text).json()


introspected = introspect(next_token['access_token'])
session.revoke_token(provider['revocation_endpoint'], token=next_token['refresh_token'])
try:
    session.refresh_token(provider['token_endpoint'], refresh_token=next_token['refresh_token'])
    refused = None
except OAuthError as error:
    refused = error.error

print(
    json.dumps(
        {
            'claims': claims,
            'userinfo': userinfo,
            'isRotated': next_token['refresh_token'] != token['refresh_token'],
            'introspected': introspected,
            'revoked': introspect(next_token['access_token']),
            'refused': refused,
        }
    )
)
