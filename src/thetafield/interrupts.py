"""SIGTERM, by which batch systems end a job, taken for Ctrl-C: checkpoints are written then, and nothing is lost."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def interrupt(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C would do now; where a shell has a process ignore that, as in the background, end it all the same.

    Raises:
        KeyboardInterrupt: Nobody has asked to be told first.
    """
    listener = signal.getsignal(signal.SIGINT)
    if not callable(listener):
        raise KeyboardInterrupt
    listener(number, frame)


@contextmanager
def interruptible() -> Iterator[None]:
    """Take SIGTERM for Ctrl-C."""
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
