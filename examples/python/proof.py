# Verifies proof artifacts of the adapters nimiq and ed25519, as docs/proofs.md explains. Needs Python 3.9 or later and the package
# cryptography.

import hashlib
import re
from base64 import urlsafe_b64encode
from datetime import datetime, timezone

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

REQUIRED = {"Action", "Origin", "Challenge ID", "Nonce", "Issued At", "Expires At", "Order ID", "Kind"}
KNOWN = REQUIRED | {"Code", "Payload Hash", "Payload", "Title", "Summary"}
# Control characters but the line feed, line separators, and characters that change the direction of text.
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

def signed_bytes(adapter_id, message):
    """The bytes that a wallet signs for a text."""
    text = message.encode()
    if adapter_id == "ed25519":
        return text
    if adapter_id == "nimiq":
        return hashlib.sha256(b"\x16Nimiq Signed Message:\n" + str(len(text)).encode() + text).digest()
    raise ValueError("adapter")

def hash_of(payload):
    return "sha256:" + urlsafe_b64encode(hashlib.sha256(payload.encode()).digest()).decode().rstrip("=")

def line_of(payload):
    """What the line Payload says of a payload in its canonical form; None if the text has its hash only."""
    fits = len(payload.encode()) <= 400 and not re.search(r"[^\S ]|  ", payload)
    return payload if fits else None

def time_of(text):
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)

def verify_proof(artifact, *, app_name, origin, adapter_id, public_key_hex, payload_hash=None, payload=None, not_before):
    """Returns the lines of the text if the owner of the key signed it, else raises ValueError."""
    if payload is not None:
        payload_hash = hash_of(payload)
    message = artifact["message"]
    if (artifact["adapterId"], artifact["publicKeyHex"].lower()) != (adapter_id, public_key_hex.lower()):
        raise ValueError("another wallet")
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key_hex))
    try:
        key.verify(bytes.fromhex(artifact["signatureHex"]), signed_bytes(adapter_id, message))
    except InvalidSignature:
        raise ValueError("signature") from None

    heading, *rest = message.split("\n")
    lines = {}
    for line in rest:
        name, _, value = line.partition(": ")
        if name not in KNOWN or name in lines or not value:
            raise ValueError("line")
        lines[name] = value
    if FORBIDDEN.search(message) or not REQUIRED <= lines.keys():
        raise ValueError("text")
    if lines["Action"] != "order.approve" or lines["Kind"] != "sign":
        raise ValueError("kind of text")

    if heading != f"{app_name} requests approval" or lines["Origin"] != origin:
        raise ValueError("application")
    if lines.get("Payload Hash") != payload_hash:
        raise ValueError("payload")
    line = lines.get("Payload")
    # Made anew: a wallet may have shown nothing else of the payload.
    if line is not None and (hash_of(line) != payload_hash or line_of(line) != line):
        raise ValueError("payload")
    if payload is not None and line != line_of(payload):
        raise ValueError("payload")
    if time_of(lines["Issued At"]) < not_before:
        raise ValueError("too old")
    return lines
