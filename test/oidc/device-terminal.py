"""A terminal by Authlib: asks for a code, polls as RFC 8628 says, calls userinfo, refreshes."""
import json
import sys
import time

from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session

issuer = sys.argv[1]
session = OAuth2Session('tulip-cli', token_endpoint_auth_method='none')
metadata = session.get(f'{issuer}/.well-known/openid-configuration', withhold_token=True).json()
form = {'client_id': 'tulip-cli', 'scope': 'openid profile'}
asked = session.post(metadata['device_authorization_endpoint'], data=form, withhold_token=True).json()
print(asked['user_code'], flush=True)
while True:
    time.sleep(asked['interval'])
    try:
        tokens = session.fetch_token(
            metadata['token_endpoint'],
            grant_type='urn:ietf:params:oauth:grant-type:device_code',
            device_code=asked['device_code'],
        )
        break
    except OAuthError as failed:
        if failed.error != 'authorization_pending':
            raise
userinfo = session.get(metadata['userinfo_endpoint']).json()
refreshed = session.refresh_token(metadata['token_endpoint'], refresh_token=tokens['refresh_token'])
print(json.dumps({'sub': userinfo['sub'], 'isRotated': refreshed['refresh_token'] != tokens['refresh_token']}))
