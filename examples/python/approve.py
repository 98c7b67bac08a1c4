# Asks a user to approve an action, and runs what was signed, by REST alone: docs/approvals.md. Needs proof.py beside it.
# json.dumps writes the canonical form of payloads whose names are ASCII and whose numbers are integers.
import json
import os
import secrets
import urllib.error
import urllib.request
from datetime import datetime, timezone
from proof import verify_proof

orders = os.environ["SIGN_URL"] + "/api/auth/cross-device"
finalize_key = secrets.token_urlsafe(32)

class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None

opener = urllib.request.build_opener(NoRedirect)

def call(path, body=None, bearer=""):
    headers = {"Accept": "application/json", "Content-Type": "application/json", "Authorization": "Bearer " + bearer}
    data = None if body is None else json.dumps(body).encode()
    try:
        with opener.open(urllib.request.Request(orders + path, data, headers), timeout=35) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise RuntimeError(json.load(error)["code"]) from None

def approved(user, title, action):
    """Returns the action once the user has signed it, and None if the user declines. Call it once for an action."""
    payload = {"typ": "countersign/action", "action": action, "nonce": secrets.token_urlsafe(32)}
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    started = call("/start", {"kind": "sign", "inboxUserId": user["id"], "displayTitle": title, "payload": text,
                              "requester": {"origin": "https://app.example"}}, os.environ["START_KEY"])
    print("Approve at", started["approvalUrl"], flush=True)
    order, token, after = started["orderId"], started["desktopToken"], ""
    while True:
        events = call(f"/events?orderId={order}{after}", bearer=token)["events"]
        status = events[-1]["status"] if events else "waiting_user"
        if status in ("rejected", "cancelled", "expired"):
            return None
        if status in ("approved", "finalized"):
            break
        after = f"&after={events[-1]['sequence']}" if events else after
    answer = call("/finalize", {"orderId": order, "desktopToken": token, "finalizeKey": finalize_key})
    verify_proof(answer["proofArtifact"], app_name="Example", origin="https://app.example", adapter_id=user["adapter_id"],
                 public_key_hex=user["public_key_hex"], payload=text,
                 not_before=datetime.fromtimestamp(0, timezone.utc))
    return json.loads(text)["action"]

# From your own records.
user = {"id": os.environ["USER_ID"], "adapter_id": "nimiq", "public_key_hex": os.environ["PUBLIC_KEY"]}
action = approved(user, "Delete the archive", {"tool": "delete", "name": "archive", "copies": 3})
print("Declined" if action is None else f"Deleting {action['name']}")
