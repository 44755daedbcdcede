"""A first client: two messages of one conversation, a fresh start, a look at the sessions.

    pip install websockets
    python3 client.py [ws://localhost:8080/ws]

The gateway answers every frame sent here with exactly one frame.
"""

import asyncio
import json
import sys

import websockets

STEPS = [
    ("a new conversation begins with a message", {"id": "msg-001", "content": "你好，我是新用户"}),
    (
        "and goes on under the key of its first message",
        {"id": "msg-002", "content": "你刚才说了什么？", "session": "webhook:msg-001"},
    ),
    ("/new begins another one; the text behind it is its first message", {"id": "msg-003", "content": "/new 让我们重新开始"}),
    ("what the gateway knows about a session", {"type": "session.get", "key": "webhook:msg-001"}),
    ("all sessions, the latest first", {"type": "session.list"}),
]


async def main(address: str) -> None:
    async with websockets.connect(address) as socket:
        for what, frame in STEPS:
            await socket.send(json.dumps(frame))
            reply = json.loads(await socket.recv())
            if reply["type"] == "error":
                raise SystemExit(f"{reply['code']}: {reply['error']}")
            print(f"# {what}")
            print(json.dumps(reply, ensure_ascii=False))


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "ws://localhost:8080/ws"))
