"""Series of many sensors cut into windows: what was seen, and what came next."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from thetafield.data.domains import DomainSet
from thetafield.errors import DataError
from thetafield.streams import numpy_stream

TRAINING = 0.6


def forecasts(
    name: str,
    series: np.ndarray,
    ids: np.ndarray,
    places: np.ndarray,
    window: tuple[int, int, int],
    split: int,
) -> tuple[DomainSet, DomainSet]:
    """Cut the series of many sensors into windows and return (training sensors, unseen sensors).

    Inputs are standardised by the training sensors, targets are as they are. The first target follows the last input.

    Args:
        name: Registry name of the dataset.
        series: Numbers of shape (steps, sensors), NaN where one is missing.
        ids: Name of each sensor.
        places: Latitude and longitude of each sensor, shape (sensors, 2).
        window: Steps seen, steps to forecast, and steps from the beginning of a window to that of the next.
        split: Which random split of the sensors into training and unseen ones.
    """
    past, ahead, every = window
    if past + ahead > len(series):
        raise DataError(
            f"{name} has {len(series)} steps, but a window of past={past} and ahead={ahead} takes {past + ahead}: "
            "choose fewer."
        )
    pieces = sliding_window_view(np.isfinite(series), past + ahead, axis=0)[::every]
    whole = np.logical_and.reduce(pieces, -1)  # (windows, sensors)
    order = np.argsort(ids, kind="stable")
    order = order[whole.any(0)[order]]
    if len(order) < 2:
        raise DataError(
            f"{name} has {len(order)} sensors with a whole window of past={past} and ahead={ahead}, but needs two to "
            "split: choose fewer steps."
        )
    seen = numpy_stream(split, name, "split").permutation(len(order)) < round(TRAINING * len(order))
    known = series[:, order[seen]].astype(np.float64)
    scaled = (series - np.float32(np.nanmean(known))) / np.float32(np.nanstd(known) or 1)
    sensor, begin = np.nonzero(whole.T[order])
    rows, columns = begin[:, None] * every + np.arange(past + ahead), order[sensor][:, None]
    domains = DomainSet.from_arrays(
        scaled[rows[:, :past], columns][..., None],
        series[rows[:, past:], columns],
        domain=ids[order[sensor]],
        z=places[order[sensor]],
        descriptors=["latitude", "longitude"],
        factors=["place", "place"],
        classification=False,
    )
    return domains.select(seen), domains.select(~seen)
