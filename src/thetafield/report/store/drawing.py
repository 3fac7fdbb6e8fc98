"""Drawing: figures take most of a report's time, so a second process draws about half of them."""

import multiprocessing
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection

import torch

from thetafield.report.embed import Embedded
from thetafield.report.store.kept import Kept
from thetafield.report.store.picture import Picture
from thetafield.report.store.sections import Section

Drawn = list[tuple[Embedded | None, str]]


def drawn(parts: Sequence[Section], kept: Kept = Kept(None)) -> list[Section]:  # noqa: B008  (frozen)
    """Return the sections with their figures drawn, or found where they were kept.

    Sections stay whole, since figures of one share the data that they make again. A second process that comes to grief
    is no loss: its share is drawn here then, and if something is wrong with a figure it shows here.
    """
    parts = [replace(part, pictures=tuple(_found(one, kept) for one in part.pictures)) for part in parts]
    mine, other = shares([sum(one.cost for one in part.pictures if one.embedded is None) for part in parts])
    if not other or sys.platform != "linux":  # elsewhere a process cannot be copied safely as it stands
        return [_with(part, _draw(part.pictures)) for part in parts]
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, [parts[i].pictures for i in other]), daemon=True)
    with warnings.catch_warnings():
        # Python warns of threads that a copy lacks; the copy below starts none and waits for none.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    sender.close()
    # Two processes with a thread each: more of them would only wait for each other.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    made = {i: _draw(parts[i].pictures) for i in mine}
    torch.set_num_threads(threads)
    try:
        made |= dict(zip(other, receiver.recv(), strict=True))
    except EOFError:
        made |= {i: _draw(parts[i].pictures) for i in other}
    process.join()
    return [_with(part, made[i]) for i, part in enumerate(parts)]


def shares(weights: Sequence[int]) -> tuple[list[int], list[int]]:
    """Divide positions into two shares of about equal weight, the heaviest first; what weighs nothing is in the first.

    >>> shares([5, 0, 3, 3])
    ([0, 1], [2, 3])
    """
    found: tuple[list[int], list[int]] = ([], [])
    totals = [0, 0]
    for position in sorted(range(len(weights)), key=lambda i: -weights[i]):
        lighter = int(totals[1] < totals[0] and weights[position] > 0)
        found[lighter].append(position)
        totals[lighter] += weights[position]
    return sorted(found[0]), sorted(found[1])


def _found(picture: Picture, kept: Kept) -> Picture:
    embedded = kept.find(picture)
    return picture if embedded is None else replace(picture, embedded=embedded)


def _draw(pictures: Sequence[Picture]) -> Drawn:
    return [(made.embedded, made.reason) for made in (one.drawn() for one in pictures)]


def _send(sender: Connection, shared: Sequence[Sequence[Picture]]) -> None:
    torch.set_num_threads(1)  # a copy has none of the threads that torch may have started
    sender.send([_draw(pictures) for pictures in shared])
    sender.close()


def _with(part: Section, made: Drawn) -> Section:
    pictures = (
        replace(one, embedded=embedded, reason=reason)
        for one, (embedded, reason) in zip(part.pictures, made, strict=True)
    )
    return replace(part, pictures=tuple(pictures))
