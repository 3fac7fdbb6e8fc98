"""Housing: the price of a home in Canberra, from February 2007 to July 2019.

Inputs: number of bedrooms, standardised by the training rows; property type and postcode, one column for each that
occurs in training, so that one which first occurs later is zero in all of them.

Target: the price in thousands of Australian dollars (regression).

Domain: the sales of a calendar quarter. Descriptor: `time`, the start of the quarter in years (2007.75 is 1 October
2007). The first 70 % of the quarters are for training, the group `future` is the rest.

Left out: sales with a missing value (the published file has none); the 30 sales with zero bedrooms, most of them
houses, where zero can only mean unknown; the 11 prices below 100,000 dollars, too little for a home here (a slip of a
digit, or a share); and periods with fewer than 20 sales, as the first two quarters are. The dearest homes, up to 8
million, stay: they are not surely errors, and the absolute error, by which numbers are trained and scored, bears them.

Source: GitHub BaiTheBest/DRAIN, regression/data/HousePrice/raw_sales.csv, to be put at housing/canberra_raw_sales.csv
under the data root. Licence: none stated.
"""

from typing import Literal

import numpy as np
import pyarrow as pa

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.root import read_table
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.errors import DataError

SOURCE = Source(
    dataset="housing",
    origin="GitHub BaiTheBest/DRAIN (regression/data/HousePrice/raw_sales.csv)",
    licence="none stated",
    files=(DataFile("housing/canberra_raw_sales.csv"),),
)
COLUMNS = {
    "datesold": pa.timestamp("s"),
    "postcode": pa.int64(),
    "price": pa.float64(),
    "propertyType": pa.string(),
    "bedrooms": pa.float64(),
}
TIMES = "%m/%d/%Y %H:%M"
MONTHS = {"year": 12, "quarter": 3}
CHEAPEST = 100_000
FEWEST = 20
PAST = 0.7


@DATASETS.register("housing")
@from_files(SOURCE)
def housing(seed: int, *, period: Literal["year", "quarter"] = "quarter") -> Dataset:
    """Read the house sales of Canberra, one domain per quarter.

    Args:
        seed: Not used, since nothing is drawn.
        period: What a domain is: the sales of a year or of a quarter.
    """
    (path,) = SOURCE.paths()
    sales = read_table(path, COLUMNS, TIMES).drop_null()
    month, postcode, price, kind, bedrooms = (sales[name].to_numpy() for name in COLUMNS)
    month = month.astype("datetime64[M]").astype(np.int64)  # months since January 1970
    begin = month // MONTHS[period] * MONTHS[period]
    sound = (price >= CHEAPEST) & (bedrooms > 0) & np.isfinite(price) & np.isfinite(bedrooms)
    begins, sizes = np.unique(begin[sound], return_counts=True)
    begins = begins[sizes >= FEWEST]
    if len(begins) < 2:
        raise DataError(
            f"{path} has {len(begins)} {period}s with at least {FEWEST} sales, but needs two to split: get the "
            f"published file from {SOURCE.origin}."
        )
    num_past = round(PAST * len(begins))
    rows = sound & np.isin(begin, begins)
    begin, postcode, price, kind, bedrooms = (column[rows] for column in (begin, postcode, price, kind, bedrooms))
    past = begin < begins[num_past]
    spread = float(bedrooms[past].std())
    kinds, postcodes = np.unique(kind[past]), np.unique(postcode[past])
    whole = DomainSet.from_arrays(
        np.column_stack(
            [
                (bedrooms - bedrooms[past].mean()) / (spread if spread > 0 else 1),
                kind[:, None] == kinds,
                postcode[:, None] == postcodes,
            ]
        ),
        price / 1000,
        domain=_period_names(begin, period),
        z=1970 + begin / 12,
        descriptors=["time"],
        features=["bedrooms", *kinds.tolist(), *(f"postcode {code}" for code in postcodes)],
        classification=False,
    )
    return Dataset(
        name="housing",
        train=whole.select(np.arange(num_past)),
        test={"future": whole.select(np.arange(num_past, len(whole)))},
        predictor="mlp",
        predictor_options={"hidden": (50, 50)},
        ordered=True,
    )


def _period_names(begin: np.ndarray, period: str) -> np.ndarray:
    """Return 2013 or 2013Q2 for periods that begin at `begin` months since January 1970; text sorts as time does."""
    years = (1970 + begin // 12).astype(str)
    if period == "year":
        return years
    return np.char.add(np.char.add(years, "Q"), (begin % 12 // 3 + 1).astype(str))
