"""Calls RPCs as gRPC's C core does, with messages as they are given.

Usage: grpc-caller.py HOST:PORT [COMPRESSION]

Reads calls from standard input, a JSON object in each line (path, streams, message in base64, metadata), and prints for each what
came of it: code, text, status details and messages, the last two in base64.
"""

import base64
import json
import sys

import grpc

target = sys.argv[1]
compression = getattr(grpc.Compression, sys.argv[2]) if len(sys.argv) > 2 else None
channel = grpc.insecure_channel(target, compression=compression)


def text(value):
    return base64.b64encode(value or b"").decode()


for line in sys.stdin:
    call = json.loads(line)
    # Without serializers, messages are bytes.
    callee = channel.unary_stream(call["path"]) if call["streams"] else channel.unary_unary(call["path"])
    request = base64.b64decode(call["message"])
    metadata = [tuple(pair) for pair in call["metadata"]]
    messages = []
    try:
        if call["streams"]:
            outcome = callee(request, metadata=metadata, timeout=10)
            for message in outcome:
                messages.append(message)
        else:
            message, outcome = callee.with_call(request, metadata=metadata, timeout=10)
            messages.append(message)
    except grpc.RpcError as error:
        outcome = error
    trailing = {key: value for key, value in outcome.trailing_metadata() or ()}
    answer = {
        "code": outcome.code().value[0],
        "text": outcome.details() or "",
        "details": text(trailing.get("grpc-status-details-bin")),
        "messages": [text(message) for message in messages],
    }
    print(json.dumps(answer), flush=True)
channel.close()
