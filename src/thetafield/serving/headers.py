"""HTTP as uvicorn reads it, with an end to how long a path and headers may be."""

import json

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST = 2**16  # bytes that may follow the first ones of a request before its headers end
REASON = f"The path and the headers are longer than {MOST} bytes: send descriptors and inputs in the body."


class BoundedHeaders(HttpToolsProtocol):
    """Refuses a request whose headers do not end: the parser would keep them all in memory, whatever their size."""

    begun = False  # a request whose headers have not ended
    followed = 0  # bytes of it since the ones that it began with

    def on_message_begin(self) -> None:
        """Note that headers are to come."""
        self.begun, self.followed = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that they are there."""
        self.begun = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Read on, unless too much of a request has come."""
        self.followed += len(data) if self.begun else 0
        if self.begun and self.followed > MOST:
            content = json.dumps({"error": REASON}).encode()
            head = "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
            head += f"content-length: {len(content)}\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode() + content)
            self.transport.close()
            return
        super().data_received(data)
