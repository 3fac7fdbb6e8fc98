"""The command line. Heavy imports happen inside commands, so that help answers at once."""

import errno
import os
import sys
import time

import typer

from thetafield.cli import bench, compare, explore, listing, packing, report, serve, tools, train
from thetafield.cli.common import app
from thetafield.errors import ThetafieldError

__all__ = ["app", "bench", "compare", "explore", "listing", "main", "packing", "report", "serve", "tools", "train"]


# What a disk says that takes nothing more: full, over its quota, with a limit to files, or closed.
CLOSED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
# What it says of a place that is none: a folder where a file should be, a file in the way, a name too long.
MISPLACED = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG)


def main() -> None:
    """Run the program; what is wrong with the input is said in one sentence, with exit code 2."""
    # Before torch is loaded: threads that wait for each other should soon sleep, or a busy machine slows them tenfold.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        app()
    except ThetafieldError as error:
        if os.environ.get("LOCAL_RANK", "0") == "0":  # of the processes that torchrun starts on a host, one speaks
            typer.echo(f"thetafield: {error}", err=True)
        else:  # and the others let it, since torchrun ends all once one has ended
            time.sleep(5)
        sys.exit(2)
    except OSError as error:
        if error.errno not in (*CLOSED, *MISPLACED):
            raise
        what = f"{error.filename}: " if error.filename else ""
        remedy = "Make room there, or name another place." if error.errno in CLOSED else "Name another place."
        typer.echo(f"thetafield: {what}{error.strerror}. {remedy}", err=True)
        sys.exit(2)
