"""The page on this machine alone: a tiny server that knows one document."""

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from thetafield.errors import OptionError

LOOPBACK = "127.0.0.1"


class _Handler(BaseHTTPRequestHandler):
    page = b""

    def do_GET(self) -> None:
        """Answer with the page at its one address."""
        found = self.path.partition("?")[0] == "/"
        content = self.page if found else b"There is one page here: /\n"
        self.send_response(HTTPStatus.OK if found else HTTPStatus.NOT_FOUND)
        self.send_header("Content-Type", f"text/{'html' if found else 'plain'}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal shows the address and no more."""


def page_server(page: str, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the page on loopback, which other machines cannot reach; port 0 takes any free one.

    Raises:
        OptionError: The port is taken or not allowed.
    """
    handler = type("PageHandler", (_Handler,), {"page": page.encode()})
    try:
        return ThreadingHTTPServer((LOOPBACK, port), handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "it is no port"
        raise OptionError(f"Port {port} cannot be used ({reason}): name another one, or 0 for any.") from None
