"""Requests to the service that are wrong in one of many ways, and what it answers to them."""

import asyncio
import json
import random

from service_wire import HOST, Line, http


def malformed(rng: random.Random, good: bytes) -> bytes:
    """Return a request that is wrong in one of many ways."""
    body = good.split(b"\r\n\r\n", 1)[1]
    content = json.loads(body)
    path, method = "/v2/models/m/infer", "POST"
    junk = rng.choice([None, 1, -1.5, "y", [], {}, [[]], True, "NaN", 10**30, [1, "a"], {"a": 1}])
    way = rng.randrange(9)
    if way == 0:
        body = body[: rng.randrange(len(body))]
    elif way == 1:
        body = bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
    elif way == 2:
        at = rng.randrange(len(body))
        body = body[:at] + rng.choice([b"NaN", b"}", b'"', b"\xff", b"[", b"1e999"]) + body[at + 1 :]
        if _valid(body):
            body = b"[" + body
    elif way == 3:
        path = rng.choice(["/v2/models/other/infer", "/v2/models/", "/x", "/v2/models/m/infer/x", "/field?z=a,b"])
        method = "GET" if path.startswith("/field") else "POST"
    elif way == 4:
        content["inputs"][rng.randrange(2)][rng.choice(["name", "shape", "datatype", "data"])] = junk
        body = json.dumps(content).encode()
    elif way == 5:
        del content["inputs"][rng.randrange(2)]
        body = json.dumps(content).encode()
    elif way == 6:
        content["inputs"] = junk
        body = json.dumps(content).encode()
    elif way == 7:
        content["inputs"][0]["data"][rng.randrange(10)] = rng.choice([None, "1", True, [1.0], {}, 1e300])
        body = json.dumps(content).encode()
    else:
        method = rng.choice(["GET", "PUT", "DELETE", "PATCH"])
    return http(path, body, method)


def _valid(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


async def fuzz(port: int, requests: list[bytes], connections: int = 8) -> dict[int, int]:
    """Send each request once, on a few connections; return how often each status came, 0 for a line that was cut."""
    counts: dict[int, int] = {}
    left = list(requests)

    def done(status, body, duration):
        if status >= 400 and b'"error"' not in body and b"Invalid HTTP" not in body:
            status = -status
        counts[status] = counts.get(status, 0) + 1

    loop, lines = asyncio.get_running_loop(), []
    choose = lambda: left.pop() if left else None  # noqa: E731
    while left or not all(line.closed for line in lines):
        lines = [line for line in lines if not line.closed]
        while left and len(lines) < connections:
            lines.append((await loop.create_connection(lambda: Line(choose, done), HOST, port))[1])
        await asyncio.sleep(0.01)
    return counts
