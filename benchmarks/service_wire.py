"""Connections to the service, held open: a request goes out, the whole response comes back, with its time."""

import asyncio
import time

HOST = "127.0.0.1"


def http(path: str, body: bytes = b"", method: str = "POST") -> bytes:
    """Return a request as it goes over the wire."""
    return f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Line(asyncio.Protocol):
    """One connection: sends a request, waits for the whole response, and says how long it took."""

    def __init__(self, choose, done, due=None, gap=0.0):
        self.choose, self.done, self.due, self.gap = choose, done, due, gap
        self.buffer, self.sent, self.closed = b"", 0.0, False

    def connection_made(self, transport):
        """Begin."""
        self.transport = transport
        self.send()

    def send(self):
        """Send the next request, or close."""
        if self.due is not None and self.due > time.perf_counter():
            asyncio.get_running_loop().call_later(self.due - time.perf_counter(), self.send)
            return
        request = self.choose()
        if request is None:
            self.closed = True
            self.transport.close()
            return
        self.sent = time.perf_counter()
        if self.due is not None:  # a request that was sent late, since the line was busy, has waited all the same
            self.sent, self.due = self.due, self.due + self.gap
        self.transport.write(request)

    def data_received(self, data):
        """Read on until the response is whole."""
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self.buffer.find(b"content-length: ")
        size = int(self.buffer[at + 16 : self.buffer.index(b"\r\n", at)])
        if len(self.buffer) < head + 4 + size:
            return
        status, body = int(self.buffer[9:12]), self.buffer[head + 4 :]
        self.buffer = b""
        self.done(status, body, time.perf_counter() - self.sent)
        self.send()

    def connection_lost(self, error):
        """Note a line that the service has cut, as after a body that is too large."""
        if not self.closed:
            self.done(0, b"", time.perf_counter() - self.sent)
            self.closed = True
