"""requests-oauthlib 1.3: writes the address of a request, reads the answer, and writes a refresh as JSON.

The redirect URI is your own. No PKCE: the client has "pkce": "optional". OAUTHLIB_RELAX_TOKEN_SCOPE=1 is for a request
of which the issuer may leave a scope out.
"""
import json
import sys

import requests
from requests_oauthlib import OAuth2Session

issuer, client_id, client_secret, redirect_uri, scope, *prompt = sys.argv[1:]
metadata = requests.get(f"{issuer}/.well-known/openid-configuration").json()
# The session repeats its scopes at each refresh.
session = OAuth2Session(client_id, redirect_uri=redirect_uri, scope=scope.split())
address, _ = session.authorization_url(metadata["authorization_endpoint"], **({"prompt": prompt[0]} if prompt else {}))
print(address, flush=True)
session.fetch_token(
    metadata["token_endpoint"], authorization_response=input(), client_secret=client_secret, include_client_id=True
)
sent = []
session.register_compliance_hook("refresh_token_response", lambda answer: (sent.append(answer.request.body), answer)[1])
# That of the first answer is in its place.
session.scope = scope.split()
token = session.refresh_token(metadata["token_endpoint"], client_id=client_id, client_secret=client_secret)
print(json.dumps({"asked": sent[0], "scope": token["scope"]}))
