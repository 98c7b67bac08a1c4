"""An MCP client's way to a token with Authlib. Writes the address to open, reads the answer, writes what it got."""

import json
import re
import sys

import requests
from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session

server, resource, client_id, redirect_uri = sys.argv[1:]
challenge = requests.post(server).headers['www-authenticate']
metadata = requests.get(server + re.search('resource_metadata="[^"]*example([^"]*)"', challenge).group(1)).json()
scope = re.search('scope="([^"]*)"', challenge).group(1)
issuer = metadata['authorization_servers'][0]
provider = requests.get(issuer + '/.well-known/oauth-authorization-server').json()
assert provider['client_id_metadata_document_supported']
assert metadata['resource'] == resource
session = OAuth2Session(
    client_id,
    token_endpoint_auth_method='none',
    scope=scope,
    redirect_uri=redirect_uri,
    code_challenge_method='S256',
)
verifier = generate_token(48)
address, state = session.create_authorization_url(
    provider['authorization_endpoint'], code_verifier=verifier, resource=resource
)
print(address, flush=True)
token = session.fetch_token(
    provider['token_endpoint'],
    authorization_response=sys.stdin.readline().strip(),
    code_verifier=verifier,
    state=state,
    resource=resource,
)
called = session.post(server)
next_token = session.refresh_token(provider['token_endpoint'], refresh_token=token['refresh_token'])
print(
    json.dumps(
        {
            'called': [called.status_code, called.json()],
            'isRotated': next_token['refresh_token'] != token['refresh_token'],
            'calledAgain': session.post(server).status_code,
        }
    )
)
