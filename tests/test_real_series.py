"""Series and satellite tiles: miniature files in the format of the real ones, and the real ones where they are."""

import io
import sys

import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import parquet
from torch.nn import functional

from thetafield.datasets import DATASETS, camels, eurosat
from thetafield.datasets.root import AbsentError
from thetafield.datasets.source import source_of
from thetafield.errors import DataError, NeedError, OptionError
from thetafield.predictors import PREDICTORS
from thetafield.streams import seeded
from thetafield.testing import check_dataset, check_predictor
from thetafield.testing.datasets import check_domains

TILES, FEATURES, IMAGES = (file.path for file in eurosat.SOURCE.files)
SERIES, ATTRIBUTES = (file.path for file in camels.SOURCE.files)
COUNTS = "traffic/pedestrian_melbourne.npz"
SPEEDS, PLACES = "traffic/metr_la_week_speed.parquet", "traffic/metr_la_sensor_locations.csv"
NAMES = ["eurosat", "camels", "pedestrians", "metr-la"]
# What a gauge must have measured: no descriptor of a basin without one.
FLOW = [
    *("q_mean", "runoff_ratio", "slope_fdc", "baseflow_index", "stream_elas", "q5", "q95", "high_q_freq", "high_q_dur"),
    *("low_q_freq", "low_q_dur", "zero_q_freq", "hfd_mean", "ri_5", "ri_10", "ri_50", "ri_500"),
]


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("THETAFIELD_DATA", str(tmp_path))
    monkeypatch.setenv("THETAFIELD_CACHE", str(tmp_path / "cache"))
    for folder in ("eurosat_geo", "camels", "traffic"):
        (tmp_path / folder).mkdir()
    return tmp_path


def both(data):
    return (data.train, data.test["unseen"])


def domains_of(data):
    """Yield (id, x, y, z) of every domain."""
    for part in both(data):
        for i, name in enumerate(part.ids):
            rows = slice(int(part.offsets[i]), int(part.offsets[i + 1]))
            yield str(name), part.x[rows].double().numpy(), part.y[rows].numpy(), part.z[i].double().numpy()


def assert_same(first, second):
    for part in ("x", "y", "z", "offsets"):
        assert torch.equal(getattr(first, part), getattr(second, part)), part
    assert first.ids.tolist() == second.ids.tolist()


def picture(row):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(row).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    stream = io.BytesIO()
    image.fromarray(pixels).save(stream, "JPEG")
    return stream.getvalue()


def tiles(cells=5, each=70, thin=12, offshore=20):
    """Tiles of some cells and countries in random order; one cell has too few, and some tiles lie in the sea."""
    stream = np.random.default_rng(0)
    num = cells * each + thin + offshore
    cell = np.concatenate([np.repeat(np.arange(cells), each), np.full(thin, cells), np.zeros(offshore, int)])
    country = np.array([f"C{i // 2}" for i in range(cells + 1)], dtype=object)[cell]
    country[-offshore:] = "OFFSHORE"
    table = {
        "label": np.array(eurosat.CLASSES, dtype=object)[stream.integers(0, 10, num)],
        "iso3": country,
        "latitude": 44 + 2 * cell + stream.uniform(0.1, 1.9, num),
        "longitude": -6 + 3 * cell + stream.uniform(0.1, 2.9, num),
        "temperature_c": stream.uniform(0, 30, num),
        "humidity_pct": stream.uniform(40, 90, num),
        "elevation_m": stream.uniform(0, 900, num),
    }
    table["temperature_c"][::3] = eurosat.FILLED["temperature_c"]
    table["elevation_m"][cell == 2] = eurosat.FILLED["elevation_m"]
    order = stream.permutation(num)
    return {name: column[order] for name, column in table.items()}


def write_tiles(root, table):
    """Files of tiles whose first two features, or whose pixels, say which row of the table they are."""
    num = len(table["label"])
    columns = {
        name: pa.array(column) if column.dtype == object else pa.array(column, pa.float32())
        for name, column in table.items()
    }
    columns["label"] = columns["label"].dictionary_encode()  # as in the real file
    parquet.write_table(pa.table({**columns, "ndvi": pa.array(np.zeros(num))}), root / TILES)
    features = np.zeros((num, 128), dtype=np.float16)
    features[:, 0], features[:, 1] = np.divmod(np.arange(num), 64)
    np.savez(root / FEATURES, x=features)


def write_pictures(root, rows):
    columns = {"row": np.asarray(rows), "jpeg": [picture(row) for row in rows]}
    parquet.write_table(pa.table(columns), root / IMAGES)


def cell_of(table):
    south = (np.floor(table["latitude"] / 2) * 2).astype(int)
    west = (np.floor(table["longitude"] / 3) * 3).astype(int)
    return np.array([f"{a:+03d}{b:+04d}" for a, b in zip(south, west, strict=True)])


def place_of(table, rows):
    """Means over rows one column at a time, without the values that stand for missing ones."""
    means = []
    for name in eurosat.NAMES:
        column = table[name][rows]
        column = column[~np.isclose(column, eurosat.FILLED.get(name, np.inf))]
        means.append(column.mean() if len(column) else np.nan)
    return means


@pytest.mark.parametrize("domain", ["cell", "country"])
def test_eurosat_domains_descriptors_and_labels(root, domain):
    table = tiles()
    write_tiles(root, table)
    data = DATASETS["eurosat"](0, domain=domain)
    key = cell_of(table) if domain == "cell" else table["iso3"].astype(str)
    land = table["iso3"] != "OFFSHORE"
    names = ["+44-006", "+46-003", "+48+000", "+50+003", "+52+006"] if domain == "cell" else ["C0", "C1", "C2"]
    assert sorted([*data.train.ids, *data.test["unseen"].ids]) == names
    assert len(data.train) == round(0.6 * len(names)) and data.predictor == "mlp"
    assert data.train.descriptors == ("latitude", "longitude", "temperature", "humidity", "elevation")
    assert data.train.x.dtype == torch.float16 and data.train.classes.tolist() == list(eurosat.CLASSES)
    known = [place_of(table, np.flatnonzero(land & (key == name))) for name in data.train.ids]
    for name, x, y, z in domains_of(data):
        rows = np.flatnonzero(land & (key == name))
        assert_array_equal(x[:, 0] * 64 + x[:, 1], rows)
        assert [eurosat.CLASSES[label] for label in y] == table["label"][rows].tolist()
        expected = np.array(place_of(table, rows))
        assert (np.isnan(expected) == (np.arange(5) == 4) * (name == "+48+000")).all()
        assert_allclose(z, np.where(np.isnan(expected), np.nanmean(known, 0), expected), rtol=1e-5)


def test_eurosat_pictures_are_decoded_once(root, monkeypatch):
    table = tiles(cells=3, each=61, thin=0)
    write_tiles(root, table)
    (root / FEATURES).unlink()  # not needed for pictures
    shown = np.flatnonzero((cell_of(table) != "+46-003") | (table["iso3"] == "OFFSHORE"))
    write_pictures(root, shown[::-1])
    data = DATASETS["eurosat"](0, inputs="images")
    assert data.predictor == "convnet" and data.train.x.dtype == torch.uint8 and data.train.x.shape[1:] == (3, 64, 64)
    image = pytest.importorskip("PIL.Image")
    for name, x, y, z in domains_of(data):
        rows = np.flatnonzero((cell_of(table) == name) & (table["iso3"] != "OFFSHORE"))[::-1]
        assert len(x) == 61 and name in ("+44-006", "+48+000")
        for tile, row in zip(x, rows.tolist(), strict=True):
            assert_array_equal(tile, np.asarray(image.open(io.BytesIO(picture(row)))).transpose(2, 0, 1))
        assert [eurosat.CLASSES[label] for label in y] == table["label"][rows].tolist()
        assert_allclose(z[:2], place_of(table, rows)[:2], rtol=1e-5)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    assert_same(DATASETS["eurosat"](0, inputs="images").train, data.train)


def test_eurosat_pictures_need_pillow(root, monkeypatch):
    write_tiles(root, tiles())
    write_pictures(root, range(3))
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(NeedError, match=r"pip install 'thetafield\[vision\]'"):
        DATASETS["eurosat"](0, inputs="images")


def write_basins(root, num=10, days=60, **changed):
    """Basin b on day t has 60 b + t mm of rain and as much runoff, so that inputs and targets say where they are from.

    Basin 3 lacks the runoff of days 20 to 29, basin 4 all of it; basin 5 lacks the rain of day 30.
    """
    stream = np.random.default_rng(1)
    place = (days * np.arange(num)[:, None] + np.arange(days)).astype(np.float16)
    series = np.stack([place, stream.uniform(-9, 30, place.shape), place % 7, place], -1).astype(np.float16)
    series[3, 20:30, 3] = series[4, :, 3] = series[5, 30, 0] = np.nan
    ids = np.array([f"0{1000 + 7 * b}" for b in range(num)])
    arrays = {"x": series, "ids": ids, "cols": np.array(["P", "T", "PET", "Q"]), "start": np.array("1995-10-01")}
    np.savez(root / SERIES, **{**arrays, **changed})
    attributes = {name: stream.uniform(1, 9, num) for name in [*FLOW, *camels.NAMES]}
    return arrays, attributes


def write_attributes(root, ids, attributes, missing=()):
    rows = ["gauge_id," + ",".join(attributes)]
    for b in reversed(range(len(ids))):  # in another order than the series
        rows.append(
            ",".join(
                [ids[b], *("" if (name, b) in missing else repr(float(attributes[name][b])) for name in attributes)]
            )
        )
    (root / ATTRIBUTES).write_text("\n".join(rows) + "\n")


def test_camels_windows_end_on_the_day_of_the_runoff(root):
    arrays, attributes = write_basins(root)
    ids, series = arrays["ids"].tolist(), arrays["x"].astype(float)
    write_attributes(root, ids, attributes)
    data = DATASETS["camels"](0, days=8, every=3)
    assert data.predictor == "temporal" and data.train.x.dtype == torch.float16 and data.train.x.shape[1:] == (8, 5)
    assert sorted([*data.train.ids, *data.test["unseen"].ids]) == ids[:4] + ids[5:] and len(data.train) == 5
    known = np.concatenate([series[ids.index(name), :, :3] for name in data.train.ids])
    mean, spread = np.nanmean(known, 0), np.nanstd(known, 0)
    for name, x, y, _ in domains_of(data):
        basin = series[ids.index(name)]
        lasts = [t for t in range(7, 60, 3) if np.isfinite(basin[t - 7 : t + 1, :3]).all() and np.isfinite(basin[t, 3])]
        assert len(lasts) < 18 if name in (ids[3], ids[5]) else len(lasts) == 18
        assert_array_equal(y[:, 0], basin[lasts, 3])
        for window, last in zip(x, lasts, strict=True):
            assert_allclose(window[:, :3], (basin[last - 7 : last + 1, :3] - mean) / spread, rtol=2e-3, atol=2e-3)
            # 1 October is day 273 of 1995, counted from zero; 1 January is day 0 again.
            day = 273 + np.arange(last - 7, last + 1)
            season = 2 * np.pi * np.where(day < 365, day, day - 365) / 365.25
            assert_allclose(window[:, 3:], np.stack([np.sin(season), np.cos(season)], 1), atol=1e-3)


def test_camels_descriptors_are_not_derived_from_flow(root):
    arrays, attributes = write_basins(root)
    ids = arrays["ids"].tolist()
    write_attributes(root, ids, attributes)
    data = DATASETS["camels"](0, days=8)
    assert not set(camels.NAMES) & set(FLOW) and data.train.z.shape[1] == 18
    names = list(camels.NAMES)
    for name, _, _, z in domains_of(data):
        expected = np.array([attributes[column][ids.index(name)] for column in names])
        expected[names.index("area_gages2")] = np.log(expected[names.index("area_gages2")])
        assert_allclose(z, expected, rtol=1e-5)
    write_attributes(root, ids, attributes | {name: 9 + attributes[name] for name in FLOW})
    for part, same in zip(both(data), both(DATASETS["camels"](0, days=8)), strict=True):
        assert_same(part, same)


def test_camels_fills_a_missing_descriptor_by_the_training_basins(root):
    arrays, attributes = write_basins(root)
    ids = arrays["ids"].tolist()
    write_attributes(root, ids, attributes)
    whole = DATASETS["camels"](0, days=8)
    train, test = ([ids.index(name) for name in part.ids] for part in both(whole))
    write_attributes(root, ids, attributes, missing={("lai_max", train[0]), ("lai_max", test[0])})
    data = DATASETS["camels"](0, days=8)
    column = list(camels.NAMES).index("lai_max")
    median = np.median(attributes["lai_max"][train[1:]])
    assert_allclose([float(part.z[0, column]) for part in both(data)], median, rtol=1e-5)
    assert_array_equal(data.train.z[1:], whole.train.z[1:])


def crowds(hours=200, sensors=6):
    """Sensor s counts 300 s + t + 1 people in hour t; one has missing hours, one counts nobody for a day."""
    counts = (300 * np.arange(sensors) + np.arange(hours)[:, None] + 1).astype(np.int16)
    counts[100:103, 1] = -1
    counts[60:84, 2] = 0
    counts[60:83, 3] = 0
    return counts


def write_crowds(root, counts, **changed):
    num = counts.shape[1]
    arrays = {
        "counts": counts,
        "lat": -37.8 + 0.03 * np.arange(num),
        "lon": 144.9 + 0.04 * np.arange(num),
        "name": np.array([f"S{9 - s}_T" for s in range(num)]),
        "start": np.array("2021-01-01"),
    }
    np.savez(root / COUNTS, **{**arrays, **changed})
    return arrays


def speeds(steps=120, sensors=6):
    table = (20 + 8 * np.arange(sensors) + np.arange(steps)[:, None] / 16).astype(np.float32)
    table[50, 1], table[51, 2] = np.nan, 0
    return table


def write_speeds(root, table, ids=None):
    num = table.shape[1]
    ids = [str(717_000 + 31 * s) for s in range(num)] if ids is None else ids
    parquet.write_table(pa.table({ids[s]: table[:, s] for s in range(num)}), root / SPEEDS)
    lines = ["index,sensor_id,latitude,longitude"]
    # In another order than the speeds.
    lines += [f"{s},{ids[s]},{34 + s / 100},{-118 - s / 50}" for s in reversed(range(num))]
    (root / PLACES).write_text("\n".join(lines) + "\n")
    return ids


@pytest.mark.parametrize("name", ["pedestrians", "metr-la"])
def test_forecasts_begin_where_inputs_end(root, name):
    if name == "pedestrians":
        series = crowds().astype(float)
        stored = write_crowds(root, crowds())
        ids, places = stored["name"].tolist(), np.column_stack([stored["lat"], stored["lon"]])
        series[series == -1] = np.nan
        series[60:84, 2] = np.nan  # a day without anybody; 23 hours are believed
    else:
        series = speeds().astype(float)
        ids = write_speeds(root, speeds())
        places = np.column_stack([34 + np.arange(6) / 100, -118 - np.arange(6) / 50])
        series[series == 0] = np.nan
    data = DATASETS[name](0, past=12, ahead=3, every=5)
    assert data.predictor == "temporal" and data.train.x.shape[1:] == (12, 1) and data.train.y.shape[1] == 3
    assert len(data.train) == 4 and sorted([*data.train.ids, *data.test["unseen"].ids]) == sorted(ids)
    known = series[:, [ids.index(sensor) for sensor in data.train.ids]]
    for sensor, x, y, z in domains_of(data):
        column = series[:, ids.index(sensor)]
        begins = [t for t in range(0, len(column) - 14, 5) if np.isfinite(column[t : t + 15]).all()]
        assert_allclose(z, places[ids.index(sensor)], rtol=1e-6)
        assert_array_equal(y, [column[t + 12 : t + 15] for t in begins])
        expected = [(column[t : t + 12] - np.nanmean(known)) / np.nanstd(known) for t in begins]
        assert_allclose(x[..., 0], expected, atol=1e-5)


def write_all(root):
    write_tiles(root, tiles())
    write_pictures(root, range(3))
    arrays, attributes = write_basins(root)
    write_attributes(root, arrays["ids"], attributes)
    write_crowds(root, crowds())
    write_speeds(root, speeds())


OPTIONS = {"eurosat": {}, "camels": {"days": 8}, "pedestrians": {}, "metr-la": {}}


@pytest.mark.parametrize("name", NAMES)
def test_the_split_is_random_and_not_of_the_seed(root, name):
    write_all(root)
    first = DATASETS[name](0, **OPTIONS[name])
    for part, same in zip(both(first), both(DATASETS[name](1, **OPTIONS[name])), strict=True):
        assert_same(part, same)
    splits = [DATASETS[name](0, split=split, **OPTIONS[name]).train.ids.tolist() for split in range(6)]
    assert splits[0] == first.train.ids.tolist() and len(set(map(tuple, splits))) > 2
    assert {len(ids) for ids in splits} == {len(first.train)}


@pytest.mark.parametrize("name", ["camels", "pedestrians", "metr-la"])
def test_unseen_domains_never_change_the_training_ones(root, name):
    write_all(root)
    before = DATASETS[name](0, **OPTIONS[name])
    unseen = before.test["unseen"].ids.tolist()
    if name == "camels":
        arrays, attributes = write_basins(root)
        spoiled = np.isin(arrays["ids"], unseen)
        write_basins(root, x=np.where(spoiled[:, None, None], arrays["x"] * 3, arrays["x"]))
        write_attributes(
            root, arrays["ids"], {name: np.where(spoiled, 5 * values, values) for name, values in attributes.items()}
        )
    elif name == "pedestrians":
        names = write_crowds(root, crowds())["name"]
        write_crowds(root, np.where(np.isin(names, unseen) & (crowds() > 0), 5 * crowds(), crowds()))
    else:
        ids = write_speeds(root, speeds())
        write_speeds(root, np.where(np.isin(ids, unseen), 3 * speeds(), speeds()))
    after = DATASETS[name](0, **OPTIONS[name])
    assert_same(before.train, after.train)
    assert not torch.equal(before.test["unseen"].x, after.test["unseen"].x)


def test_a_filled_descriptor_of_eurosat_is_of_the_training_domains_alone(root):
    table = tiles()
    write_tiles(root, table)
    datas = (DATASETS["eurosat"](0, split=split) for split in range(9))
    split, before = next((i, data) for i, data in enumerate(datas) if "+48+000" in data.train.ids)
    unseen = np.isin(cell_of(table), before.test["unseen"].ids)
    write_tiles(root, table | {"elevation_m": np.where(unseen, table["elevation_m"] * 7, table["elevation_m"])})
    after = DATASETS["eurosat"](0, split=split)
    assert_same(before.train, after.train)
    assert not torch.equal(before.test["unseen"].z, after.test["unseen"].z)


FILES = [
    ("eurosat", TILES, {}),
    ("eurosat", FEATURES, {}),
    ("eurosat", IMAGES, {"inputs": "images"}),
    ("camels", SERIES, {"days": 8}),
    ("camels", ATTRIBUTES, {"days": 8}),
    ("pedestrians", COUNTS, {}),
    ("metr-la", SPEEDS, {}),
    ("metr-la", PLACES, {}),
]


@pytest.mark.parametrize(("name", "relative", "options"), FILES)
def test_a_missing_file_says_where_it_was_looked_for(root, name, relative, options):
    write_all(root)
    (root / relative).unlink()
    with pytest.raises(AbsentError) as caught:
        DATASETS[name](0, **options)
    for word in (name, str(root / relative), "GitHub", "THETAFIELD_DATA", "--data-dir"):
        assert word in str(caught.value)


@pytest.mark.parametrize(("name", "relative", "options"), FILES)
@pytest.mark.parametrize("damage", ["empty", "binary", "cut"])
def test_a_file_of_another_kind_is_named(root, name, relative, options, damage):
    write_all(root)
    whole = (root / relative).read_bytes()
    content = {"empty": b"", "binary": bytes(range(256)) * 4, "cut": whole[: len(whole) // 2]}
    (root / relative).write_bytes(content[damage])
    with pytest.raises(DataError, match="is damaged") as caught:
        DATASETS[name](0, **options)
    assert str(root / relative) in str(caught.value) and "\n" not in str(caught.value)
    assert str(caught.value).count("is damaged") == 1 and not isinstance(caught.value, AbsentError)


def spoil_tiles(**changed):
    return lambda root: write_tiles(root, tiles() | changed)


def spoil_features(x):
    return lambda root: np.savez(root / FEATURES, x=x)


def spoil_basins(**changed):
    return lambda root: write_basins(root, **changed)


def spoil_crowds(**changed):
    return lambda root: write_crowds(root, **({"counts": crowds()} | changed))


NUM = len(tiles()["label"])


@pytest.mark.parametrize(
    ("name", "spoil", "finding"),
    [
        ("eurosat", spoil_tiles(label=np.full(NUM, "Moor", dtype=object)), "a label is missing or unknown"),
        ("eurosat", spoil_tiles(label=np.array([None, *["Forest"] * (NUM - 1)])), "a label is missing"),
        ("eurosat", spoil_tiles(iso3=np.array([None, *["C0"] * (NUM - 1)], dtype=object)), "a country or a place is"),
        ("eurosat", spoil_tiles(latitude=np.full(NUM, np.nan)), "a country or a place is missing"),
        ("eurosat", spoil_tiles(humidity_pct=np.full(NUM, np.nan)), "missing in all training domains"),
        ("eurosat", spoil_tiles(latitude=np.full(NUM, 45), longitude=np.full(NUM, 7)), "has 1 domains (cell)"),
        ("eurosat", spoil_features(np.zeros((NUM - 1, 128), np.float16)), f"one row for each of the {NUM} tiles"),
        ("eurosat", spoil_features(np.zeros((NUM, 128), np.float32)), "type float32"),
        ("eurosat", spoil_features(np.full((NUM, 128), np.nan, np.float16)), "a feature is missing or infinite"),
        ("camels", spoil_basins(cols=np.array(["P", "PET", "T", "Q"])), "names of the series do not fit"),
        ("camels", spoil_basins(x=np.zeros((10, 60), np.float16)), "shape and names of the series"),
        ("camels", spoil_basins(x=np.full((10, 60, 4), -1, np.float16)), "a negative precipitation or runoff"),
        ("camels", spoil_basins(ids=np.full(10, "01")), "two basins share a gauge"),
        ("camels", spoil_basins(ids=np.arange(10).astype(str)), "it lacks gauge 0"),
        ("camels", spoil_basins(start=np.array("once")), "start is no day: once"),
        ("camels", spoil_basins(x=np.full((10, 60, 4), np.nan, np.float16)), "has 0 basins with 8 days in a row"),
        ("pedestrians", spoil_crowds(name=np.array(["A"] * 6)), "two sensors share a name"),
        ("pedestrians", spoil_crowds(lat=np.zeros(5)), "not of one number of sensors"),
        ("pedestrians", spoil_crowds(counts=crowds() - 9), "a count is neither"),
        ("metr-la", lambda root: write_speeds(root, -speeds()), "a speed is negative or infinite"),
        (
            "metr-la",
            lambda root: (root / PLACES).write_text("sensor_id,latitude,longitude\n5,34,-118\n"),
            "no column 5",
        ),
        ("metr-la", lambda root: (root / PLACES).write_text("sensor_id,latitude,longitude\n5,,-118\n"), "no place"),
    ],
)
def test_a_wrong_value_is_named(root, name, spoil, finding):
    write_all(root)
    spoil(root)
    with pytest.raises(DataError) as caught:
        DATASETS[name](0, **OPTIONS[name])
    assert finding in str(caught.value) and str(root) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "content", "finding"),
    [
        ([0, 0], None, "a row is no tile or occurs twice"),
        ([0, 10_000], None, "a row is no tile or occurs twice"),
        ([0, 1], b"no picture", "picture 0 cannot be read"),
    ],
)
def test_a_wrong_picture_is_named(root, rows, content, finding):
    write_all(root)
    write_pictures(root, rows)
    if content:
        parquet.write_table(pa.table({"row": rows, "jpeg": [content] * len(rows)}), root / IMAGES)
    with pytest.raises(DataError, match=finding):
        DATASETS["eurosat"](0, inputs="images")


def test_windows_longer_than_the_series_are_refused(root):
    write_all(root)
    for name, options in (("camels", {"days": 61}), ("pedestrians", {"past": 198}), ("metr-la", {"ahead": 90})):
        with pytest.raises(DataError, match="choose fewer"):
            DATASETS[name](0, **options)


@pytest.mark.parametrize("name", NAMES)
def test_the_real_files(name):
    try:
        check_dataset(name)
    except AbsentError as absent:
        pytest.skip(str(absent))


def test_the_real_pictures(tmp_path, monkeypatch):
    pytest.importorskip("PIL.Image")
    monkeypatch.setenv("THETAFIELD_CACHE", str(tmp_path))
    try:
        data = DATASETS["eurosat"](0, inputs="images", domain="country")
    except AbsentError as absent:
        pytest.skip(str(absent))
    for part in both(data):
        check_domains(part)
    assert len(data.train) == 16 and len(data.test["unseen"]) == 11


def test_sources_say_where_the_files_come_from():
    for name in NAMES:
        source = source_of(DATASETS[name])
        assert source is not None and source.dataset == name and source.licence and source.files


@pytest.mark.parametrize("shape", [(24, 3), (48, 1), (120, 5), (6,), (1, 2)])
def test_temporal(shape):
    check_predictor("temporal", input_shape=shape)


@pytest.mark.parametrize("steps", [1, 2, 5, 48, 63, 64, 120])
def test_the_last_state_is_that_of_a_dilated_network(steps, generator):
    with seeded(0, "temporal"):
        backbone = PREDICTORS["temporal"]((steps, 3), 2, channels=16).double().backbone
    x = torch.randn(5, steps, 3, dtype=torch.float64, generator=generator).requires_grad_(True)

    def dilated(series, layer, step):
        weight = layer.weight.view(layer.out_features, -1, 3)
        return functional.conv1d(functional.pad(series.mT, (2 * step, 0)), weight, layer.bias, dilation=step).mT

    state = dilated(x, backbone.first, 1)
    for depth, layer in enumerate(backbone.layers, 1):
        state = state + dilated(state.relu(), layer, 2**depth)
    last = backbone(x)
    torch.testing.assert_close(last, state[:, -1])
    (gradient,) = torch.autograd.grad(last.sum(), x)
    assert bool(gradient.abs().sum((0, 2)).gt(0).all()), "a step is not seen"


def test_temporal_has_no_statistics_and_refuses_images():
    predictor = PREDICTORS["temporal"]((120, 5), 1, layers=3)
    assert not list(predictor.backbone.buffers()) and len(predictor.backbone.layers) == 2
    with pytest.raises(OptionError, match=r"\(3, 64, 64\): choose another predictor"):
        PREDICTORS["temporal"]((3, 64, 64), 2)
