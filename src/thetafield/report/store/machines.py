"""Which machine timed what: seconds of one machine say nothing beside those of another."""

from collections import Counter
from collections.abc import Sequence

from thetafield.report.store.items import Item, Trial


def machines(items: Sequence[Item]) -> list[str]:
    """Return the machines that trials ran on, the most common one first."""
    counts = Counter(device for item in items if (device := _machine(item)))
    return [device for device, _ in counts.most_common()]


def elsewhere(items: Sequence[Item]) -> list[str]:
    """Return for each item what is to be added to its name: where it ran, if not where most did."""
    usual = machines(items)[:1]
    found = map(_machine, items)
    return [f", on {machine}" if machine and machine not in usual else "" for machine in found]


def _machine(item: Item) -> str:
    device = str(item.result.get("device") or "") if isinstance(item, Trial) else ""
    return device.removesuffix("s") if device.endswith(" 1 threads") else device  # as results once had it
