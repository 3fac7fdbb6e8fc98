"""What happens to a request before it is read: who may ask, how much, and that it is counted."""

import asyncio
import hmac
import time
from collections.abc import Callable

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thetafield.serving.refusal import Refusal

OPEN = ("/v2/health/live", "/v2/health/ready")  # probes of a container have no token
MOST_DIGITS = 18  # of the size of a body
LINGER = 1.0  # seconds in which a client that sends too much can take note of it, before the line is cut
MEGABYTE = 10**6


class Admission:
    """Lets in requests with the right token and a body of bounded size, and counts all of them.

    Args:
        app: What answers.
        token: What must follow "Bearer" in the header "Authorization"; None lets everybody in.
        max_body: Most bytes of a body.
        responded: Told path, status and seconds of each request.
    """

    def __init__(
        self, app: ASGIApp, token: str | None, max_body: int, responded: Callable[[str, int, float], None]
    ) -> None:
        self.app, self.max_body, self.responded = app, max_body, responded
        self.expected = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            self._check_token(scope)
            declared = self._check_length(scope)
            bounded = receive if declared else self._bounded(receive)
            await self.app(scope, bounded, noting)
        except Refusal as refusal:
            await _refuse(refusal, receive, noting)
        finally:
            route = scope.get("route")
            path = getattr(route, "path", None) or "other"  # never what a client wrote: there is no end of that
            self.responded(path, status, time.perf_counter() - started)

    def _check_token(self, scope: Scope) -> None:
        if self.expected is None or scope["path"] in OPEN:
            return
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        if not hmac.compare_digest(given, self.expected):
            raise Refusal(401, 'This service needs its token: send the header "Authorization: Bearer TOKEN".')

    def _check_length(self, scope: Scope) -> bool:
        """Return whether the size of the body is declared, and refuse it if it is too large, before it is read."""
        for name, value in scope["headers"]:
            if name == b"content-length":
                digits = value.lstrip(b"0") or b"0"  # zeros before it would hide how large a number is
                if not value.isdigit() or len(digits) > MOST_DIGITS or int(digits) > self.max_body:
                    raise self._too_large()
                return True
        return False

    def _too_large(self) -> Refusal:
        return Refusal(413, f"The body is larger than {self.max_body / MEGABYTE:g} MB: split the request.")

    def _bounded(self, receive: Receive) -> Receive:
        """Return a receiver that stops where a body of undeclared size grows too large."""
        received = 0

        async def bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.max_body:
                raise self._too_large()
            return message

        return bounded


async def _refuse(refusal: Refusal, receive: Receive, send: Send) -> None:
    """Say it and close the line; what still comes is thrown away for a while, or the client would not hear."""
    body = orjson.dumps({"error": str(refusal)})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send(
        {"type": "http.response.start", "status": refusal.status, "headers": [*headers, (b"connection", b"close")]}
    )
    await send({"type": "http.response.body", "body": body, "more_body": True})
    try:
        async with asyncio.timeout(LINGER):
            while (await receive()).get("more_body", False):
                pass
    except TimeoutError:
        pass
    await send({"type": "http.response.body", "body": b""})
