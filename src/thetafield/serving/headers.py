"""HTTP as uvicorn reads it, with an end to how much a parser keeps of a request before anything comes of it."""

import json

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST = 2**16  # bytes beyond those that one read brings
REASON = f"The path, the headers or the trailers go on for more than {MOST} bytes: send what is long in the body."


class BoundedHeaders(HttpToolsProtocol):
    """Refuses a request whose headers or trailers do not end: the parser would keep all of them in memory.

    Bytes count from one sign of progress to the next, which are the beginning of a request, the end of its headers,
    each piece of its body, and its end.
    """

    progress = 0
    idle = 0  # bytes since the last sign of progress

    def on_message_begin(self) -> None:
        """Note it."""
        self.progress += 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note it."""
        self.progress += 1
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note it."""
        self.progress += 1
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note it."""
        self.progress += 1
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Read on, and end a connection on which too much has come to nothing."""
        before = self.progress
        super().data_received(data)
        self.idle = self.idle + len(data) if self.progress == before else 0
        if self.idle > MOST and not self.transport.is_closing():
            if self.cycle is None or not self.cycle.response_started:
                self.transport.write(REFUSAL)
            self.transport.close()


def _refusal() -> bytes:
    content = json.dumps({"error": REASON}).encode()
    head = "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(content)}\r\nconnection: close\r\n\r\n".encode() + content


REFUSAL = _refusal()
