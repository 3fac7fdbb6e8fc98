"""What cannot be compared is refused in a sentence, and what looks too good to be true is said aloud."""

import math
import re
from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from thetafield.data.columns import MOST_CATEGORIES, CategoryColumn
from thetafield.data.descriptors import check_descriptors
from thetafield.data.domains import DomainSet
from thetafield.errors import DataError
from thetafield.streams import numpy_stream

FEWEST_DOMAINS = 5
ROWS_PER_DOMAIN = 2  # on average, below which a domain is no data set
MOST_LABELS = 200
SAME = 0.9999  # rank correlation above which two columns are one
LOOKED_AT, LEAVES = 4000, 64  # rows that a leak is looked for in, and leaves of the tree that looks
LEAK = 0.02  # error of one feature alone, relative to an answer that knows nothing
MOST_FEATURES = 500
FEWEST_IN_ORDER = 10  # domains, below which labels lie in order along a descriptor by chance
CHANCE = 0.01  # at most that labels drawn at random lie in order
FEWEST_VALUES = 3  # over all domains, of a feature that may describe them
NUMBER = re.compile(r"[-+]?\d[\d.,' ]*")  # in whatever way of writing
MOST_NAMED = 6  # features in one warning


def check_domains(domains: DomainSet, domain: str | None) -> None:
    """Raise a sentence where there is nothing to compare.

    Args:
        domains: All domains.
        domain: Name of the column that names a domain, where there is one.
    """
    count, rows = len(domains), len(domains.x)
    column = "rows with equal descriptors" if domain is None else f"the values of {domain!r}"
    if rows < ROWS_PER_DOMAIN * count:
        raise DataError(
            f"{rows:,} rows make {count:,} domains ({column}), about one row each: a domain is a group of rows, such "
            "as a station or a year; name the column that groups them."
        )
    if count < FEWEST_DOMAINS:
        raise DataError(
            f"There {'is 1 domain' if count == 1 else f'are {count} domains'} ({column}), but a comparison on unseen "
            f"domains needs at least {FEWEST_DOMAINS}: name a column with more values, or gather more domains."
        )
    if domains.classes is not None and len(domains.classes) > MOST_LABELS:
        raise DataError(
            f"The target has {len(domains.classes):,} different labels, but at most {MOST_LABELS} are compared: use "
            "--regression if they are numbers, or join rare labels."
        )
    if domains.classes is None and not bool((domains.y != domains.y[:1]).any()):
        raise DataError(f"The target is {float(domains.y[0, 0]):g} in every row: there is nothing to predict.")
    check_descriptors(domains)
    _check_disclosed(domains)


def _check_disclosed(domains: DomainSet) -> None:
    """Refuse a descriptor that gives the target away; it is constant in a domain, so the target has to be too."""
    first = domains.y[domains.offsets[:-1]]
    inside = domains.y == first.repeat_interleave(domains.sizes, dim=0)
    if not bool(inside.all()):
        return
    target = first.reshape(len(domains), -1)[:, 0].double().numpy()
    if domains.classes is not None and len(np.unique(target)) == len(domains):
        raise DataError(
            f"Each of the {len(domains)} domains has one label, which no other has: what is learned of it says nothing "
            "about a new domain; name another target, or a domain column with fewer values, or use --regression if the "
            "labels are numbers."
        )
    for name, column in zip(domains.descriptors, domains.z.double().numpy().T, strict=True):
        if domains.classes is None:
            given = np.ptp(column) > 0 and abs(np.corrcoef(rankdata(column), rankdata(target))[0, 1]) > SAME
        else:
            groups = [target[column == value] for value in np.unique(column)]
            given = len(groups) < len(domains) and all(np.ptp(group) == 0 for group in groups)
            given = given or _in_order(column, target)
        if given:
            raise DataError(
                f"Descriptor {name!r} gives the target away: it is the target under another name or a function of it, "
                "so it cannot be known for a new domain; leave it out."
            )


def _in_order(column: np.ndarray, labels: np.ndarray) -> bool:
    """Return whether each label has a stretch of the column of its own, as a recoded label does, and not by chance."""
    ordered = labels[np.argsort(column, kind="stable")]
    counts = np.unique(labels, return_counts=True)[1].tolist()
    if len(labels) < FEWEST_IN_ORDER or len(counts) < 2:
        return False
    # Of all orders of the labels, those in which each has one stretch.
    chance = math.lgamma(len(counts) + 1) + sum(math.lgamma(n + 1) for n in counts) - math.lgamma(len(labels) + 1)
    return chance < math.log(CHANCE) and int((ordered[1:] != ordered[:-1]).sum()) == len(counts) - 1


def warnings_of(domains: DomainSet, seed: int = 0) -> list[str]:
    """Return what a person should know before believing any number."""
    texts = [] if domains.encoder is None else [c for c in domains.encoder.features if isinstance(c, CategoryColumn)]
    pure = [column for column in texts if not column.strays]
    return [
        *_mixed([column for column in texts if column.strays]),
        *_many_categories(pure),
        *_written_numbers(pure),
        *_still(domains),
        *_leaks(domains, seed),
    ]


def _mixed(columns: Sequence[CategoryColumn]) -> list[str]:
    """Return a sentence for each feature that would be numbers but for a few texts."""
    return [
        f"Feature {column.name!r} has numbers, but also {', '.join(map(repr, column.strays))}, so that all of it is "
        "taken for categories: leave such cells empty, and it is read as numbers."
        for column in columns
    ]


def _many_categories(columns: Sequence[CategoryColumn]) -> list[str]:
    return [
        f"Feature {column.name!r} is text with {MOST_CATEGORIES} different values or more: the {MOST_CATEGORIES} most "
        "frequent ones are used and all others count as none of them. If it is a name or a number of a row, leave it "
        "out."
        for column in columns
        if len(column.categories) >= MOST_CATEGORIES
    ]


def _written_numbers(columns: Sequence[CategoryColumn]) -> list[str]:
    """Return a sentence for each feature whose categories all look like numbers in another way of writing."""
    return [
        f"Feature {column.name!r} holds text such as {column.categories[0]!r}, which is taken for "
        f"{len(column.categories)} categories: if these are numbers, store them as such, with a decimal point and "
        "nothing else."
        for column in columns
        if all(NUMBER.fullmatch(text.strip()) for text in column.categories)
        and not all(text.isdigit() for text in column.categories)  # codes such as 01
    ]


def _still(domains: DomainSet) -> list[str]:
    """Return a sentence on features that differ between domains only, as descriptors do."""
    x = domains.x
    if not domains.features or len(x.shape) != 2 or x.shape[1] > MOST_FEATURES:
        return []
    found, place = [], 0
    for name, width, fit in _raw_features(domains):
        part = x[:, place : place + width]
        place += width
        first = part[domains.offsets[:-1]]
        still = fit and bool((part == first.repeat_interleave(domains.sizes, dim=0)).all())
        if still and len(np.unique(first.numpy(), axis=0)) >= FEWEST_VALUES:
            found.append(name)
    if not found:
        return []
    if len(found) == 1:
        return [
            f"{found[0]} does not vary within a domain and is used as an input: if it describes the domain, list it in "
            "--descriptors."
        ]
    if len(found) > MOST_NAMED:
        found = [*found[: MOST_NAMED - 1], f"{len(found) - MOST_NAMED + 1} others"]
    return [
        f"{', '.join(found[:-1])} and {found[-1]} do not vary within a domain and are used as inputs: if they describe "
        "the domain, list them in --descriptors."
    ]


def _raw_features(domains: DomainSet) -> list[tuple[str, int, bool]]:
    """Return each feature as a person knows it, the number of its encoded columns, and whether it could describe."""
    encoder = domains.encoder
    if encoder is None:
        return [(name, 1, name not in domains.descriptors) for name in domains.features or ()]
    known = {column.name for column in encoder.descriptors} | {encoder.domain}
    return [
        (column.name, len(column.names), column.name not in known and not isinstance(column, CategoryColumn))
        for column in encoder.features
    ]


def _leaks(domains: DomainSet, seed: int) -> list[str]:
    """Return a sentence for each feature that alone predicts almost perfectly on other domains."""
    x = domains.x.flatten(1)
    if len(domains.x.shape) != 2 or x.shape[1] > MOST_FEATURES:  # a pixel leaks nothing
        return []
    stream = numpy_stream(seed, "leaks")
    rows = np.sort(stream.permutation(len(x))[:LOOKED_AT])
    domain = np.repeat(np.arange(len(domains)), domains.sizes.numpy())[rows]
    seen = domain % 2 == 0  # every other domain, so that what is learned has to hold on unseen ones
    y = domains.y.numpy()[rows].reshape(len(rows), -1)[:, 0]
    if seen.all() or not seen.any() or len(np.unique(y[seen])) < 2:
        return []
    classes = domains.classes is not None
    naive = np.mean(y[~seen] != np.bincount(y[seen]).argmax()) if classes else np.abs(y - np.median(y))[~seen].mean()
    tree = (DecisionTreeClassifier if classes else DecisionTreeRegressor)(max_leaf_nodes=LEAVES, random_state=0)
    names = domains.features or tuple(f"x{i}" for i in range(x.shape[1]))
    found = []
    for name, column in zip(names, x.numpy()[rows].T, strict=True):
        guess = tree.fit(column[seen, None], y[seen]).predict(column[~seen, None])
        error = np.mean(guess != y[~seen]) if classes else np.abs(guess - y[~seen]).mean()
        # A tree of few leaves cannot follow a line, which a correlation can.
        line = not classes and np.ptp(column) > 0 and abs(np.corrcoef(column, y)[0, 1]) > SAME
        if naive > 0 and (error < LEAK * naive or line):
            found.append(
                f"Feature {name!r} alone predicts the target almost perfectly: is it known before the target is? If it "
                "is measured with it or made from it, leave it out, or every number here is too good."
            )
    return found
