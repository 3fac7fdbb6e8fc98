"""From a folder to a running service: what to load, where to listen, how to stop."""

import gc
import os
import re
import signal
import socket
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from thetafield.errors import FormatError, NeedError, OptionError
from thetafield.fields.storage import DESCRIPTION, read_model
from thetafield.training.train import pick_device

PATIENCE = 30  # seconds that requests have to finish once the service is asked to stop
IDLE = 75  # seconds that a connection may be silent
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a field is served.

    Args:
        host: Address to listen on.
        port: Port; 0 takes a free one.
        name: Name of the model; the folder's by default.
        token_file: File with the token that clients must send.
        max_body: Most megabytes of a request.
        max_rows: Most rows of a request.
        device: auto, cpu or cuda.
        access_log: Whether every request is said.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    name: str | None = None
    token_file: Path | None = None
    max_body: float = 16.0
    max_rows: int = 10_000
    device: str = "auto"
    access_log: bool = False


def serve(folder: Path, terms: Terms, say: Callable[[str], None]) -> None:
    """Serve the field in a folder until a signal comes (SIGTERM or SIGINT); requests in flight are finished first.

    Args:
        folder: A saved field, or a trial's folder that holds one.
        terms: How.
        say: Told what a person should know.

    Raises:
        FormatError: There is no field, or it is damaged.
        NeedError: A package of the extra `serve` is missing.
        OptionError: The address, the name or the token cannot be used.
    """
    missing = [
        name for name in ("fastapi", "uvicorn", "httptools", "orjson", "prometheus_client") if find_spec(name) is None
    ]
    if missing:
        raise NeedError(f"The service needs {' and '.join(missing)}: pip install 'thetafield[serve]'.")
    import torch
    import uvicorn

    from thetafield.serving.application import application
    from thetafield.serving.headers import BoundedHeaders

    folder = field_folder(folder)
    name = model_name(folder, terms.name)
    token = None if terms.token_file is None else read_token(terms.token_file, say)
    model = read_model(folder).to(pick_device(terms.device))
    # A thread of torch for every second core: the others are for clients, and for the service's own thread.
    torch.set_num_threads(max(1, min(torch.get_num_threads(), (os.cpu_count() or 2) // 2)))
    app = application(model, name, token, terms.max_body, terms.max_rows)
    config = uvicorn.Config(
        app,
        loop="asyncio",  # uvloop answers no faster here, and takes one new connection per turn, so that they wait long
        http=BoundedHeaders,
        log_level="info" if terms.access_log else "warning",
        access_log=terms.access_log,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=PATIENCE,
        server_header=False,
        ws="none",
    )
    with listen(terms.host, terms.port) as line:
        if terms.host not in LOOPBACK and token is None:
            say(f"Everybody who reaches {terms.host} may ask: give --token-file, or put a proxy in front.")
        host = f"[{terms.host}]" if ":" in terms.host else terms.host
        say(f"Model {name!r} is at http://{host}:{line.getsockname()[1]}/v2/models/{name} (stop: Ctrl-C).")
        # uvicorn raises the signal again once all is done; a service that was asked to stop has not failed.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        # What is loaded by now stays: looked through again and again for garbage, it would stop all answers for 200 ms.
        gc.collect()
        gc.freeze()
        uvicorn.Server(config).run(sockets=[line])


def field_folder(folder: Path) -> Path:
    """Return the folder of the saved field: the one given, or `field` in a trial's."""
    if (folder / DESCRIPTION).exists() or not folder.is_dir():
        return folder  # where it is missing or damaged, loading says so
    if (folder / "field").is_dir():
        return folder / "field"
    raise FormatError(f"{folder} holds no field: give a saved field, or a trial's folder that has field/ in it.")


def model_name(folder: Path, given: str | None) -> str:
    """Return a name that can stand in a path: the one given, or that of the folder."""
    if given is not None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", given):
            raise OptionError(f"A name is letters, digits, dots, dashes and underscores, but got {given!r}.")
        return given
    whole = folder.resolve()
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", (whole.parent if whole.name == "field" else whole).name).strip("-._")
    return plain[:100] or "field"


def read_token(path: Path, say: Callable[[str], None]) -> str:
    """Return the token in a file, and say so where others may read it."""
    try:
        token = path.read_text(encoding="ascii").strip()
        mode = path.stat().st_mode
    except OSError as error:
        raise OptionError(f"The token cannot be read from {path} ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise OptionError(f"The token in {path} is not plain text: use letters and digits.") from None
    if not re.fullmatch(r"[\x21-\x7e]+", token):
        raise OptionError(f"{path} needs one line with the token, without spaces: openssl rand -hex 32 > {path}.")
    if mode & (stat.S_IRWXG | stat.S_IRWXO) and sys.platform != "win32":
        say(f"Others may read the token in {path}: chmod 600 {path}.")
    return token


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that takes connections already: who connects early waits a moment instead of being refused."""
    line = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        line = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio waits to fill packets
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        line.bind((host, port))
        line.listen(2048)
    except (OSError, UnicodeError) as error:
        if line is not None:
            line.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise OptionError(f"{host}:{port} cannot be listened on ({reason}): choose another --host or --port.") from None
    return line
