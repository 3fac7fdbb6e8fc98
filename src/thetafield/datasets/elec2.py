"""Elec2: does the price of electricity in New South Wales rise above its mean of the last day?

Inputs: day of the week (1 is Sunday), half-hour of the day (1 to 48), price and demand in New South Wales, price and
demand in Victoria, transfer between the two. Prices are taken as log(1 + price), since spikes of nearly 400 times the
median would otherwise leave nothing of all other differences; then all inputs are standardised by the training rows.

Target: 1 where the price in New South Wales is above its mean over the 48 half-hours before, else 0 (so 99.95 % of the
published labels).

Domain: two weeks of half-hours. Descriptor: `time`, the first day of the domain, in days since the first day of the
data (11 May 1997). The first 70 % of the domains are for training, the group `future` is the rest.

Source: GitHub BaiTheBest/DRAIN, classification/data/Elec2/elec2_clean.csv, to be put at elec2/elec2_clean.csv under the
data root. Licence: none stated.
"""

from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.root import damaged, read_table
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.errors import DataError
from thetafield.options import Count

SOURCE = Source(
    dataset="elec2",
    origin="GitHub BaiTheBest/DRAIN (classification/data/Elec2/elec2_clean.csv)",
    licence="none stated",
    files=(DataFile("elec2/elec2_clean.csv"),),
)
NAMES = {
    "Feat1": "weekday",
    "Feat2": "half_hour",
    "Feat3": "nsw_price",
    "Feat4": "nsw_demand",
    "Feat5": "vic_price",
    "Feat6": "vic_demand",
    "Feat7": "transfer",
}
COLUMNS = {"Time": pa.int64(), **dict.fromkeys(NAMES, pa.float64()), "Y": pa.int64()}
PRICES = [2, 4]  # positions of nsw_price and vic_price
PAST = 0.7
FEWEST = 20  # samples without which a domain, cut off by the end of the data, says too little


@DATASETS.register("elec2")
@from_files(SOURCE)
def elec2(seed: int, *, days: Count = 14) -> Dataset:
    """Read the electricity market of New South Wales, May 1997 to December 1998, in domains of two weeks.

    Args:
        seed: Not used, since nothing is drawn.
        days: Length of a domain in days.
    """
    (path,) = SOURCE.paths()
    table = read_table(path, COLUMNS)
    stamps, labels = table["Time"].to_numpy(), table["Y"].to_numpy()
    inputs = np.column_stack([table[name].to_numpy() for name in NAMES])
    _check(path, table, inputs, labels)
    inputs[:, PRICES] = np.log1p(inputs[:, PRICES])
    day = _days(stamps, inputs[:, 0], path)
    time = (day - day[0]).astype(np.int64) // days * days
    starts, domain, sizes = np.unique(time, return_inverse=True, return_counts=True)
    starts, rows = starts[sizes >= FEWEST], (sizes >= FEWEST)[domain]
    if len(starts) < 2:
        raise DataError(
            f"elec2 needs two domains to split past and future, but days={days} makes {len(starts)}: choose fewer days."
        )
    num_past = round(PAST * len(starts))
    inputs, labels, time = inputs[rows], labels[rows], time[rows]
    past = time < starts[num_past]
    spread = inputs[past].std(0)
    whole = DomainSet.from_arrays(
        (inputs - inputs[past].mean(0)) / np.where(spread > 0, spread, 1),
        labels,
        domain=(day[0] + time).astype(str),
        z=time,
        descriptors=["time"],
        features=list(NAMES.values()),
        classification=True,
    )
    return Dataset(
        name="elec2",
        train=whole.select(np.arange(num_past)),
        test={"future": whole.select(np.arange(num_past, len(whole)))},
        predictor="mlp",
        predictor_options={"hidden": (50, 50)},
        ordered=True,
    )


def _check(path: Path, table: pa.Table, inputs: np.ndarray, labels: np.ndarray) -> None:
    """Raise where a value is missing or cannot be what its column means."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            raise damaged(path, COLUMNS, f"column {name} has {column.null_count} missing values")
    if not np.isfinite(inputs).all() or (inputs[:, PRICES] < 0).any():
        raise damaged(path, COLUMNS, "an input is infinite or a price is negative")
    if not np.isin(labels, [0, 1]).all():
        raise damaged(path, COLUMNS, "Y is not 0 or 1 everywhere")


def _days(stamps: np.ndarray, weekdays: np.ndarray, path: Path) -> np.ndarray:
    """Return the day of each row.

    Most stamps are YYMMDD, but those of four weeks are YYDDMM: 971210 is 10 December 1997 in one place and 12 October
    in another. Rows are in order of time, so the first reading that is later than the day before and falls on the
    right weekday is the day.
    """
    begins = np.flatnonzero(np.concatenate([[True], np.diff(stamps) != 0]))
    days: list[date] = []
    for row in begins.tolist():
        readings = [day for day in _readings(int(stamps[row])) if day.isoweekday() % 7 + 1 == weekdays[row]]
        later = [day for day in readings if not days or day > days[-1]]
        if not later:
            raise damaged(path, COLUMNS, f"Time {stamps[row]} of row {row} is no day after the one before it")
        days.append(min(later))
    return np.repeat(np.array(days, dtype="datetime64[D]"), np.diff(begins, append=len(stamps)))


def _readings(stamp: int) -> list[date]:
    """Return the days that YYMMDD or YYDDMM can mean."""
    year, first, second = 1900 + stamp // 10000, stamp // 100 % 100, stamp % 100
    days = []
    for month, day in ((first, second), (second, first)):
        try:
            days.append(date(year, month, day))
        except ValueError:  # a thirteenth month: the other order is meant
            continue
    return days
