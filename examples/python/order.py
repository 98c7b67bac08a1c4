"""Goes through a cross-device order over gRPC, as the computer and as the phone.

Usage: order.py HOST:PORT

Needs python3-grpcio, python3-protobuf, python3-cryptography, and the code that protoc makes of gen/proto:
docs/other-languages.md has the command.
"""

import sys
from urllib.parse import urlsplit

import grpc
from countersign.v1 import order_service_pb2 as order
from countersign.v1 import session_service_pb2 as session
from countersign.v1.order_service_pb2_grpc import OrderServiceStub
from countersign.v1.session_service_pb2_grpc import SessionServiceStub
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def phone(orders: OrderServiceStub, claim_url: str) -> None:
    """Approves an order, as a phone does that has scanned its QR code. A real wallet keeps its key and asks its owner."""
    url = urlsplit(claim_url)
    order_id = url.path.rsplit("/", 1)[-1]
    claim_token = url.fragment.removeprefix("token=")
    claim = orders.ClaimOrder(order.ClaimOrderRequest(order_id=order_id, claim_token=claim_token))
    token = claim.challenge_token
    challenge = orders.GetOrderChallenge(order.GetOrderChallengeRequest(order_id=order_id, challenge_token=token))
    print(f"the phone shows the code {challenge.confirmation_code}")

    key = Ed25519PrivateKey.generate()
    proof = order.OrderProof(
        public_key_hex=key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex(),
        signature_hex=key.sign(challenge.message.encode()).hex(),
        adapter_id="ed25519",
    )
    orders.ApproveOrder(order.ApproveOrderRequest(order_id=order_id, challenge_token=token, proof=proof))


def backend(channel: grpc.Channel, token: str) -> None:
    """Asks whose session token it is, as a backend does with one that a user's client sends."""
    found = SessionServiceStub(channel).IntrospectSession(session.IntrospectSessionRequest(token=token))
    print(f"signed in: {found.session.adapter_id} {found.session.address}")


def main(target: str) -> None:
    with grpc.insecure_channel(target) as channel:
        orders = OrderServiceStub(channel)
        started = orders.StartOrder(order.StartOrderRequest(kind=order.ORDER_KIND_LOGIN, display_title="Sign in"))
        print(f"the computer shows the code {started.confirmation_code}")

        watch = order.WatchOrderRequest(order_id=started.order_id, desktop_token=started.desktop_token)
        for event in orders.WatchOrder(watch):
            if event.heartbeat:
                continue
            print(order.OrderStatus.Name(event.status))
            if event.status == order.ORDER_STATUS_CREATED:
                phone(orders, started.claim_url)
            if event.status == order.ORDER_STATUS_APPROVED:
                finalize = order.FinalizeOrderRequest(order_id=started.order_id, desktop_token=started.desktop_token)
                backend(channel, orders.FinalizeOrder(finalize).token)


if __name__ == "__main__":
    main(sys.argv[1])
