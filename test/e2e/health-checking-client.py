"""A gRPC client that watches the health of its server, as gRPC's C core does by itself if the service config says so.

Usage: health-checking-client.py HOST:PORT SERVICE

Prints each state of its channel (READY: the server's health is SERVING) and `answered` or the status code of one call.
Ends when its standard input ends.
"""

import json
import sys

import grpc

target, service = sys.argv[1:]
service_config = {
    "healthCheckConfig": {"serviceName": service},
    # The default policy, pick_first, checks no health.
    "loadBalancingConfig": [{"round_robin": {}}],
}
channel = grpc.insecure_channel(target, options=[("grpc.service_config", json.dumps(service_config))])
channel.subscribe(lambda state: print(state.name, flush=True), try_to_connect=True)
# Without serializers, messages are bytes; an empty request has none.
issue_nonce = channel.unary_unary("/countersign.v1.SignInService/IssueNonce")
try:
    issue_nonce(b"", metadata=[("origin", f"http://{target}")], wait_for_ready=True, timeout=5)
    print("answered", flush=True)
except grpc.RpcError as error:
    print(error.code().name, flush=True)
sys.stdin.read()
channel.close()
