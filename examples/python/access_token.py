"""Verifies an access token with PyJWT: docs/access-tokens.md. Answer 503 to a jwt.PyJWKClientConnectionError, and 401 to any other
jwt.PyJWTError.
"""

import jwt

ISSUER = "https://auth.example"
AUDIENCE = "https://orders.example"
keys = jwt.PyJWKClient(f"{ISSUER}/.well-known/jwks.json", lifespan=300)

def verify(token: str) -> dict:
    if jwt.get_unverified_header(token).get("typ") != "at+jwt":
        raise jwt.InvalidTokenError("not an access token")
    key = keys.get_signing_key_from_jwt(token).key
    required = {"require": ["iss", "aud", "sub", "exp", "iat"]}
    claims = jwt.decode(token, key, algorithms=["ES256"], issuer=ISSUER, audience=AUDIENCE, leeway=5, options=required)
    if "client_id" in claims or "cnf" in claims:
        raise jwt.InvalidTokenError("a client's token")
    return claims
