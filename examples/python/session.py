"""Whose session token or cookie it is, by IntrospectSession: docs/backends.md."""

import json
import urllib.request


def session_of(text, form="token", url="http://localhost:8080"):
    """The session of a bearer token or, with the form "cookie", of a cookie's value; or None.

    Raises OSError or ValueError if that cannot be decided: answer 503 then.
    """
    request = urllib.request.Request(
        url + "/countersign.v1.SessionService/IntrospectSession",
        json.dumps({form: text}).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=5) as response:
        return json.load(response).get("session")
