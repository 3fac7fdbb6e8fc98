"""Real tables: miniature files in the published format through the real path, and the real files where they are."""

import csv
from datetime import datetime, timedelta
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.testing import assert_allclose
from pyarrow import parquet

from thetafield.datasets import DATASETS
from thetafield.datasets.root import AbsentError
from thetafield.datasets.tables import read_npz, read_parquet
from thetafield.errors import DataError
from thetafield.testing import check_dataset

WEATHER = ("weather_aus/weatherAUS.parquet", "weather_aus/stations.csv")
ATMOSPHERE = ("nasaweather/atmos.parquet", "nasaweather/elev.csv")
TPT48 = ("tpt48/tpt48_monthly_temp.npz", "tpt48/lonlat.csv")
CIRCLE = ("cida_toy/half-circle.npz",)
ARXIV = ("arxiv/arxiv_cap500.parquet", "arxiv/arxiv_cap500_minilm_f16.npy", "arxiv/publishers.csv")
FILES = {"weather-aus": WEATHER, "atmosphere": ATMOSPHERE, "tpt48": TPT48, "circle": CIRCLE, "arxiv-titles": ARXIV}
SPLIT = ["weather-aus", "atmosphere", "tpt48", "arxiv-titles"]
STATIONS = {"Cairns": (-16.9, 145.8), "Darwin": (-12.5, 130.8), "Hobart": (-42.9, 147.3), "Perth": (-32.0, 115.9)}
WINDS = ["N", "E", "SSW", None]
DEGREES = [0, 90, 202.5, None]
STATES = ["WY", "AL", "WA", "FL", "OR", "ME", "TX", "KS"]  # the published order is alphabetical; it need not be
STATISTICS = ("n_sources", "docs_2024", "docs_3y", "cites_3y", "refs", "h_max", "h_mean", "sjr_wmean", "cites_per_doc")
STATISTICS += ("refs_per_doc", "pct_female", "oa_share", "q1_share")
ARCHIVES = ["math", "cs", "physics"]
EIGHT = np.float16(np.sqrt(8))


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("THETAFIELD_DATA", str(tmp_path))
    return tmp_path


def place(root, relative):
    path = root / relative
    path.parent.mkdir(exist_ok=True)
    return path


def write_csv(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_parquet(path, rows):
    parquet.write_table(pa.Table.from_pylist(rows), path)


class Mini:
    """A miniature of each dataset, to be spoiled before it is written."""

    def __init__(self, name):
        stream = np.random.default_rng(0)
        self.name = name
        getattr(self, name.replace("-", "_"))(stream)

    def weather_aus(self, stream):
        self.rows = []
        for number, station in product(range(0, 366, 7), STATIONS):
            wind = (number // 7) % 4
            rain, tomorrow = stream.exponential(2, 2).round(1).tolist()
            missing = number % 5 == 0
            temperature = stream.normal(20, 5, 4).round(1).tolist()
            self.rows.append(
                {
                    "Date": datetime(2011, 12, 1) + timedelta(number),
                    "Location": station,
                    "MinTemp": temperature[0],
                    "MaxTemp": temperature[1],
                    "Rainfall": None if missing else rain,
                    "Evaporation": None if station == "Perth" else rain + 1,
                    "Sunshine": 8.0,
                    "WindGustDir": WINDS[wind],
                    "WindGustSpeed": 40.0,
                    "WindDir9am": "N",
                    "WindDir3pm": "W",
                    "WindSpeed9am": 12.0,
                    "WindSpeed3pm": 13.0,
                    "Humidity9am": 70,
                    "Humidity3pm": 50 + number % 9,
                    "Pressure9am": 1010.0 + number % 11,
                    "Pressure3pm": 1009.0,
                    "Cloud9am": 3,
                    "Cloud3pm": 4,
                    "Temp9am": temperature[2],
                    "Temp3pm": temperature[3],
                    "RainToday": None if missing else ("Yes" if rain > 1 else "No"),
                    "RISK_MM": tomorrow,
                    "RainTomorrow": "Yes" if tomorrow > 1 else "No",
                }
            )
        self.places = [{"Location": name, "lat": lat, "lon": lon} for name, (lat, lon) in STATIONS.items()]

    def atmosphere(self, stream):
        lats, longs = np.linspace(-20, 30, 5), np.linspace(-110, -60, 5)
        names = ("surftemp", "temp", "pressure", "ozone", "cloudlow", "cloudmid", "cloudhigh")
        self.rows = [
            {"lat": lat, "long": long, "year": 1995, "month": month}
            | dict(zip(names, stream.normal(100, 10, 7).tolist(), strict=True))
            for month, long, lat in product(range(1, 13), longs.tolist(), lats[::-1].tolist())
        ]
        # The original file: rows are latitudes from north to south, columns longitudes from west to east. The published
        # table calls the rows longitudes and the columns latitudes.
        self.heights = np.arange(25.0).reshape(5, 5) ** 2
        self.places = [
            {"long": longs[i], "lat": lats[::-1][j], "elev": self.heights[i, j]} for i, j in product(range(5), range(5))
        ]
        self.places.sort(key=lambda row: (row["long"], row["lat"]))

    def tpt48(self, stream):
        self.states, self.temperature = np.array(STATES), stream.normal(50, 20, (len(STATES), 36)).astype(np.float32)
        self.places = [
            {"state": state, "latitude": i / 10, "longitude": i / 20, "name": state} for i, state in enumerate(STATES)
        ][::-1]

    def circle(self, stream):
        self.arrays = {
            "data": stream.normal(size=(300, 2)),
            "label": np.tile([0, 1], 150),
            "domain": np.repeat(np.arange(30), 10),
        }

    def arxiv_titles(self, stream):
        archives = [*ARCHIVES, *"abcdefgh"]
        self.rows = [
            {"title": f"title {number} {prefix}", "prefix": f"10.{prefix}", "archive": archives[number % 11]}
            for prefix, number in product(range(1000, 1006), range(66))
        ]
        self.rows[10]["archive"] = "math"  # which leaves h the rarest of eleven
        self.rows += [dict(self.rows[0]), dict(self.rows[1])]  # the same papers again
        self.rows += [{"title": f"few {number}", "prefix": "10.9999", "archive": "math"} for number in range(49)]
        self.rows[-1]["archive"] = "cs"
        self.vectors = stream.normal(size=(len(self.rows), 8)).astype(np.float16)
        names = [f"sjr_{name}" for name in STATISTICS]
        self.places = [
            {"prefix": f"10.{1000 + i}", "publisher": f"House {i}", "n_arxiv": 9, "arxiv_mean_year": 2000}
            | {name: 10.0 * (i + 1) + column for column, name in enumerate(names)}
            for i in range(6)
        ]
        self.places[2] |= {name: 0 if name == "sjr_n_sources" else None for name in names}

    def write(self, root):
        paths = [place(root, relative) for relative in FILES[self.name]]
        if self.name == "circle":
            np.savez(paths[0], **self.arrays)
            return
        write_csv(paths[-1], self.places)
        if self.name == "tpt48":
            np.savez(paths[0], states=self.states, temp=self.temperature)
        else:
            write_parquet(paths[0], self.rows)
        if self.name == "arxiv-titles":
            np.save(paths[1], self.vectors)

    def load(self, root, **options):
        self.write(root)
        return DATASETS[self.name](0, **options)


def joined(data):
    """Return x, y and the domain's name of every row, training rows first."""
    parts = [data.train, *data.test.values()]
    names = np.concatenate([np.repeat(part.ids, part.sizes) for part in parts])
    return torch.cat([part.x for part in parts]).numpy(), torch.cat([part.y for part in parts]).numpy(), names


def in_order(data, domains):
    """Return the rows of a file, named by their domains, in the order of `joined`: by domain, then as in the file."""
    wanted = [*data.train.ids.tolist(), *data.test["unseen"].ids.tolist()]
    return np.argsort([wanted.index(name) for name in domains], kind="stable")


def assert_same(first, second):
    for part in ("x", "y", "z", "offsets"):
        assert torch.equal(getattr(first, part), getattr(second, part)), part
    assert first.ids.tolist() == second.ids.tolist()


def season_of(row):
    return ("summer", "autumn", "winter", "spring")[row["Date"].month % 12 // 3]


@pytest.mark.parametrize(("name", "relative"), [(name, file) for name, files in FILES.items() for file in files])
def test_a_missing_file_says_where_it_was_looked_for(root, name, relative):
    Mini(name).write(root)
    (root / relative).unlink()
    with pytest.raises(AbsentError) as caught:
        DATASETS[name](0)
    for word in (name, str(root / relative), "GitHub", "THETAFIELD_DATA", "--data-dir"):
        assert word in str(caught.value)


@pytest.mark.parametrize(("name", "relative"), [(name, file) for name, files in FILES.items() for file in files])
@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", bytes(range(256)) * 4], ids=["empty", "columns", "binary"])
def test_a_file_of_another_kind_is_named(root, name, relative, content):
    Mini(name).write(root)
    (root / relative).write_bytes(content)
    with pytest.raises(DataError, match=r"is damaged .* expected .* so get the file again\.$") as caught:
        DATASETS[name](0)
    assert str(caught.value).startswith(str(root / relative)) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_short_is_named(root, name):
    Mini(name).write(root)
    path = root / FILES[name][0]
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match="is damaged") as caught:
        DATASETS[name](0)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", SPLIT)
def test_a_split_is_drawn_by_its_number_alone(root, name):
    mini = Mini(name)
    mini.write(root)
    first, again = DATASETS[name](0, split=1), DATASETS[name](7, split=1)
    assert_same(first.train, again.train)
    assert_same(first.test["unseen"], again.test["unseen"])
    drawn = set()
    for split in range(5):
        data = DATASETS[name](0, split=split)
        train, unseen = set(data.train.ids.tolist()), set(data.test["unseen"].ids.tolist())
        assert list(data.test) == ["unseen"] and not train & unseen
        assert len(train) == round(0.6 * (len(train) + len(unseen)))
        drawn.add(frozenset(train))
    assert len(drawn) > 1


@pytest.mark.parametrize("name", SPLIT)
def test_unseen_domains_never_change_the_training_ones(root, name):
    mini = Mini(name)
    before = mini.load(root)
    unseen = set(before.test["unseen"].ids.tolist())
    if name == "weather-aus":
        for row in mini.rows:
            if f"{row['Location']} {season_of(row)}" in unseen:
                row |= {"MinTemp": 40.0 + row["MinTemp"], "Temp9am": None, "Rainfall": 300.0}
    elif name == "atmosphere":
        for row in mini.rows:
            if f"{row['lat']:.1f} {row['long']:.1f}" in unseen:
                row["temp"] *= 10
    elif name == "tpt48":
        mini.temperature[np.isin(mini.states, list(unseen))] += 100
    else:
        for row, vector in zip(mini.rows, mini.vectors, strict=True):
            if any(row["prefix"] in name for name in unseen):
                vector += 1
        for row in mini.places:
            if any(row["prefix"] in name for name in unseen):
                row["sjr_refs"] = 10**6
    after = mini.load(root)
    assert_same(before.train, after.train)
    assert not torch.equal(before.test["unseen"].x, after.test["unseen"].x)


def test_weather_domains_descriptors_and_answers(root):
    mini = Mini("weather-aus")
    data = mini.load(root)
    assert data.train.descriptors == ("latitude", "longitude", "season_sine", "season_cosine")
    assert data.train.factors == ("place", "place", "season", "season")
    cycle = {"summer": (0, 1), "autumn": (1, 0), "winter": (0, -1), "spring": (-1, 0)}
    for part in (data.train, data.test["unseen"]):
        expected = [(*STATIONS[name.split()[0]], *cycle[name.split()[1]]) for name in part.ids.tolist()]
        assert_allclose(part.z, expected, rtol=1e-6)
    domains = [f"{row['Location']} {season_of(row)}" for row in mini.rows]
    order = in_order(data, domains)
    _, answers, names = joined(data)
    assert names.tolist() == [domains[i] for i in order] and len(set(domains)) == 16
    assert data.train.classes[answers].tolist() == [mini.rows[i]["RainTomorrow"] for i in order]


def test_weather_inputs_know_training_rows_only(root):
    mini = Mini("weather-aus")
    data = mini.load(root)
    x, _, names = joined(data)
    columns = dict(zip(data.train.features, x.T, strict=True))
    rows = [mini.rows[i] for i in in_order(data, [f"{row['Location']} {season_of(row)}" for row in mini.rows])]
    known = np.isin(names, data.train.ids)
    for name in ("MinTemp", "Humidity3pm", "Rainfall", "Evaporation"):
        raw = np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=float)
        raw = np.log(1 + raw) if name in ("Rainfall", "Evaporation") else raw
        missing = np.isnan(raw)
        filled = np.where(missing, np.median(raw[known & ~missing]), raw)
        assert_allclose(columns[name], (filled - filled[known].mean()) / filled[known].std(), atol=1e-5)
        if missing.any():
            assert_allclose(columns[f"{name} missing"], missing)
    assert [name for name in columns if "missing" in name] == ["Rainfall missing", "Evaporation missing"]
    assert not columns["Sunshine"].any()  # the same everywhere: nothing is divided by zero
    assert_allclose(columns["RainToday"], [row["RainToday"] == "Yes" for row in rows])
    angles = [DEGREES[WINDS.index(row["WindGustDir"])] for row in rows]
    expected = [[0, 0] if a is None else [np.sin(np.deg2rad(a)), np.cos(np.deg2rad(a))] for a in angles]
    assert_allclose(np.column_stack([columns["WindGustDir sine"], columns["WindGustDir cosine"]]), expected, atol=1e-6)


def test_weather_has_no_indicator_that_training_does_not_need(root):
    mini = Mini("weather-aus")
    unseen = mini.load(root).test["unseen"].ids.tolist()
    for row in mini.rows:
        row["MaxTemp"] = None if f"{row['Location']} {season_of(row)}" in unseen else row["MaxTemp"]
    assert "MaxTemp missing" not in mini.load(root).train.features


def test_weather_leaves_out_the_amount_of_rain_tomorrow_and_days_without_answer(root):
    mini = Mini("weather-aus")
    before = mini.load(root)
    assert not any("RISK" in name or "Tomorrow" in name for name in before.train.features)
    for row in mini.rows:
        row["RISK_MM"] = 0.0
    unanswered = [row | {"RainTomorrow": None, "MinTemp": -90.0} for row in mini.rows[:40]]
    mini.rows += unanswered
    after = mini.load(root)
    assert_same(before.train, after.train)
    assert_same(before.test["unseen"], after.test["unseen"])


def test_atmosphere_domains_descriptors_and_targets(root):
    mini = Mini("atmosphere")
    data = mini.load(root)
    assert data.train.descriptors == ("latitude", "longitude", "elevation")
    assert data.train.factors == ("place", "place", "elevation")
    lats, longs = np.linspace(30, -20, 5), np.linspace(-110, -60, 5)
    heights = {f"{lats[i]:.1f} {longs[j]:.1f}": mini.heights[i, j] for i, j in product(range(5), range(5))}
    for part in (data.train, data.test["unseen"]):
        assert_allclose(part.z[:, :2], [[float(word) for word in name.split()] for name in part.ids])
        assert part.z[:, 2].tolist() == [heights[name] for name in part.ids.tolist()]
        assert set(part.sizes.tolist()) == {12}
    domains = [f"{row['lat']:.1f} {row['long']:.1f}" for row in mini.rows]
    rows = [mini.rows[i] for i in in_order(data, domains)]
    x, y, names = joined(data)
    assert_allclose(y[:, 0], [row["surftemp"] for row in rows], rtol=1e-6)
    known = np.isin(names, data.train.ids)
    for column, name in enumerate(("temp", "pressure", "ozone", "cloudlow", "cloudmid", "cloudhigh")):
        raw = np.array([row[name] for row in rows])
        assert_allclose(x[:, column], (raw - raw[known].mean()) / raw[known].std(), atol=1e-5)
    month = np.array([row["month"] for row in rows])
    assert_allclose(x[month == 4, 6:], np.tile([1.0, 0.0], (25, 1)), atol=1e-6)
    assert_allclose(x[month == 1, 6:], np.tile([0.0, 1.0], (25, 1)), atol=1e-6)
    assert "surftemp" not in data.train.features


def test_atmosphere_leaves_out_incomplete_months(root):
    mini = Mini("atmosphere")
    before = mini.load(root)
    mini.rows.append(mini.rows[0] | {"cloudlow": None, "temp": 10.0**6})
    after = mini.load(root)
    assert_same(before.train, after.train)
    assert_same(before.test["unseen"], after.test["unseen"])


@pytest.mark.parametrize("sources", ["random", "west", "north"])
def test_tpt48_predicts_six_months_from_six(root, sources):
    mini = Mini("tpt48")
    data = mini.load(root, sources=sources)
    train, unseen = data.train, data.test["unseen"]
    if sources == "west":
        assert train.ids.tolist() == ["OR", "WA"]
    if sources == "north":
        assert train.ids.tolist() == ["KS", "ME", "OR", "TX"]  # the later half, as their latitudes are here
    assert sorted([*train.ids, *unseen.ids]) == sorted(STATES)
    assert set(train.sizes.tolist()) == {36 - 11} and set(unseen.sizes.tolist()) == {3}
    series = dict(zip(STATES, mini.temperature, strict=True))
    known = np.stack([series[name] for name in train.ids.tolist()])
    for part, step in ((train, 1), (unseen, 12)):
        for i, name in enumerate(part.ids.tolist()):
            rows = slice(int(part.offsets[i]), int(part.offsets[i + 1]))
            starts = range(0, 25, step)
            past = np.stack([series[name][start : start + 6] for start in starts])
            assert_allclose(part.x[rows], (past - known.mean()) / known.std(), atol=1e-4)
            assert_allclose(part.y[rows], [series[name][start + 6 : start + 12] for start in starts])
            assert_allclose(part.z[i], [STATES.index(name) / 20, STATES.index(name) / 10], rtol=1e-6)
    assert train.descriptors == ("longitude", "latitude") and train.num_outputs == 6


@pytest.mark.parametrize(("part", "num_domains"), [("half", 30), ("quarter", 15)])
def test_circle_trains_on_the_first_six(root, part, num_domains):
    mini = Mini("circle")
    data = mini.load(root, part=part)
    assert data.ordered and data.train.descriptors == ("index",)
    assert data.train.z.ravel().tolist() == list(range(6))
    assert data.test["unseen"].z.ravel().tolist() == list(range(6, num_domains))
    x, y, _ = joined(data)
    assert_allclose(x, mini.arrays["data"][: 10 * num_domains], rtol=1e-6)
    assert y.tolist() == mini.arrays["label"][: 10 * num_domains].tolist()


def test_arxiv_domains_vectors_and_labels(root):
    mini = Mini("arxiv-titles")
    data = mini.load(root)
    assert data.train.x.dtype == data.test["unseen"].x.dtype == torch.float16
    # Repeated papers, a publisher with 49 titles and the eleventh archive are left out.
    assert sorted([*data.train.ids, *data.test["unseen"].ids]) == [f"10.{1000 + i} House {i}" for i in range(6)]
    kept = [i for i, row in enumerate(mini.rows[:396]) if row["archive"] != "h"]
    assert data.train.classes.tolist() == sorted([*ARCHIVES, *"abcdefg"])
    order = in_order(data, [f"{mini.rows[i]['prefix']} House {mini.rows[i]['prefix'][-1]}" for i in kept])
    x, y, _ = joined(data)
    assert_allclose(x, mini.vectors[kept][order] * EIGHT)
    assert data.train.classes[y].tolist() == [mini.rows[kept[i]]["archive"] for i in order]


@pytest.mark.parametrize("split", range(4))
def test_arxiv_descriptors_are_medians_of_training_publishers_where_missing(root, split):
    data = Mini("arxiv-titles").load(root, split=split)
    parts = (data.train, data.test["unseen"])
    assert data.train.descriptors == STATISTICS

    def expected(number):
        raw = 10.0 * (number + 1) + np.arange(13)
        return np.concatenate([np.log(1 + raw[:9]), raw[9:]])

    trained = [expected(int(name[-1])) for name in data.train.ids.tolist() if name[-1] != "2"]
    for part in parts:
        for name, z in zip(part.ids.tolist(), part.z, strict=True):
            assert_allclose(z, np.median(trained, 0) if name[-1] == "2" else expected(int(name[-1])), rtol=1e-5)


def spoil(name, change):
    mini = Mini(name)
    change(mini)
    return mini


@pytest.mark.parametrize(
    ("name", "change", "file", "finding"),
    [
        ("weather-aus", lambda m: [row.pop("Humidity3pm") for row in m.rows], 0, "there is no column Humidity3pm"),
        ("weather-aus", lambda m: [row.update(MinTemp="mild") for row in m.rows], 0, "mild"),
        ("weather-aus", lambda m: m.rows[3].update(WindDir9am="up"), 0, "column WindDir9am has the word 'up'"),
        ("weather-aus", lambda m: m.rows[3].update(RainTomorrow="No way"), 0, "column RainTomorrow has the word"),
        ("weather-aus", lambda m: m.rows[3].update(Rainfall=-1.0), 0, "an amount of water is negative"),
        ("weather-aus", lambda m: m.rows[3].update(Temp3pm=np.inf), 0, "a number is infinite"),
        ("weather-aus", lambda m: m.rows[3].update(Location=None), 0, "a day has no Date or no Location"),
        ("weather-aus", lambda m: [row.update(Sunshine=None) for row in m.rows], 0, "column Sunshine has no value"),
        ("weather-aus", lambda m: m.places.pop(), 1, "there is no Location Perth"),
        ("weather-aus", lambda m: m.places[0].update(lat=None), 1, "a latitude or longitude is missing"),
        ("atmosphere", lambda m: m.rows[0].update(ozone=np.inf), 0, "a number is infinite"),
        ("atmosphere", lambda m: [row.update(month=1.5) for row in m.rows], 0, "1.5"),
        ("atmosphere", lambda m: m.places.pop(), 1, "not the square grid"),
        ("atmosphere", lambda m: m.places[3].update(lat=50.0), 1, "not the square grid"),
        ("atmosphere", lambda m: m.places[3].update(elev=None), 1, "a number is missing"),
        ("tpt48", lambda m: setattr(m, "temperature", m.temperature[1:]), 0, "temp (7, 36)"),
        ("tpt48", lambda m: m.temperature.fill(np.nan), 0, "not a finite number"),
        ("tpt48", lambda m: m.states.fill("AL"), 0, "states are not distinct"),
        ("tpt48", lambda m: m.places.pop(0), 1, "there is no state KS"),
        ("tpt48", lambda m: m.places[0].update(latitude=None), 1, "a longitude or latitude is missing"),
        ("circle", lambda m: m.arrays.pop("label"), 0, "there is no array label"),
        ("circle", lambda m: m.arrays.update(label=np.zeros(300)), 0, "label is not 0 and 1"),
        ("circle", lambda m: m.arrays.update(domain=np.zeros(300)), 0, "domain is not 0 to 29"),
        ("circle", lambda m: m.arrays.update(data=np.zeros((300, 3))), 0, "the shapes are (300, 3)"),
        ("circle", lambda m: m.arrays.update(data=np.full((300, 2), np.nan)), 0, "a point is not finite"),
        ("arxiv-titles", lambda m: m.rows[0].update(archive=None), 0, "a title, prefix or archive is missing"),
        ("arxiv-titles", lambda m: setattr(m, "vectors", m.vectors[1:]), 1, "it has shape"),
        ("arxiv-titles", lambda m: setattr(m, "vectors", m.vectors.astype(np.float64)), 1, "type float64"),
        ("arxiv-titles", lambda m: m.vectors.fill(np.nan), 1, "a number is not finite"),
        ("arxiv-titles", lambda m: m.places.pop(), 2, "there is no prefix 10.1005"),
        ("arxiv-titles", lambda m: m.places[0].update(sjr_refs=-1), 2, "a count is negative"),
        ("arxiv-titles", lambda m: [row.update(sjr_refs=None) for row in m.places], 2, "a column has no value"),
    ],
)
def test_damage_is_named(root, name, change, file, finding):
    with pytest.raises(DataError) as caught:
        spoil(name, change).load(root)
    message = str(caught.value)
    assert message.startswith(str(root / FILES[name][file])) and finding in message and "is damaged" in message
    assert not isinstance(caught.value, AbsentError) and "\n" not in message


def test_too_few_domains_are_named(root):
    with pytest.raises(DataError, match="1 publishers with at least 50 titles"):
        spoil("arxiv-titles", lambda m: [row.update(prefix="10.1000") for row in m.rows]).load(root)
    with pytest.raises(DataError, match="has 0 of 6 states for training"):

        def eastern(mini):
            kept = ~np.isin(mini.states, ["WA", "OR"])
            mini.states, mini.temperature = mini.states[kept], mini.temperature[kept]

        spoil("tpt48", eastern).load(root, sources="west")


def test_parquet_columns_are_converted_and_ordered(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path, [{"a": 1, "b": "x", "c": 2}, {"a": None, "b": "y", "c": 3}])
    table = read_parquet(path, {"c": pa.float64(), "a": pa.float64()})
    assert table.column_names == ["c", "a"] and table["c"].to_pylist() == [2.0, 3.0]
    assert table["a"].null_count == 1
    parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), path)
    with pytest.raises(DataError, match=r"it has no rows\): expected the published Parquet table with the columns a"):
        read_parquet(path, {"a": pa.int64()})


def test_pickled_arrays_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.array([{}], dtype=object), b=np.arange(3))
    assert read_npz(path, ["b"])["b"].tolist() == [0, 1, 2]
    with pytest.raises(DataError, match=r"is damaged .* the arrays a, so get the file again"):
        read_npz(path, ["a"])
    np.save(tmp_path / "b.npy", np.arange(3))
    with pytest.raises(DataError, match="is damaged"):
        read_npz(tmp_path / "b.npy", ["a"])


@pytest.mark.parametrize("name", FILES)
def test_the_published_file(name):
    try:
        check_dataset(name)
    except AbsentError as absent:
        pytest.skip(str(absent))


def published(name, **options):
    try:
        data = DATASETS[name](0, **options)
    except AbsentError as absent:
        pytest.skip(str(absent))
    return data, [data.train, *data.test.values()]


@pytest.mark.parametrize(
    ("name", "num_domains", "num_samples", "width"),
    [
        ("weather-aus", 196, 142_193, 39),
        ("atmosphere", 576, 41_362, 8),
        ("circle", 30, 3000, 2),
        ("tpt48", 48, 29 * 133 + 19 * 12, 6),
        ("arxiv-titles", 88, 26_156, 384),
    ],
)
def test_the_size_of_the_published_file(name, num_domains, num_samples, width):
    _, parts = published(name)
    assert sum(map(len, parts)) == num_domains and sum(len(part.x) for part in parts) == num_samples
    assert {part.x.shape[1] for part in parts} == {width}


def test_the_published_mountains_stand_where_the_pressure_is_low():
    _, parts = published("atmosphere")
    pressure = torch.cat(
        [part.x[:, 1].split(part.sizes.tolist())[i].mean()[None] for part in parts for i in range(len(part))]
    )
    height = torch.cat([part.z[:, 2] for part in parts])
    assert np.corrcoef(pressure, height)[0, 1] < -0.9


def test_the_published_circle_is_cut_by_its_radius():
    _, parts = published("circle")
    for part in parts:
        assert torch.equal(part.x.norm(dim=1) > 5, part.y == 1)
        angle = torch.deg2rad(part.z.ravel().repeat_interleave(part.sizes) * 180 / 29)
        assert bool(((part.x - 5 * torch.stack([angle.cos(), angle.sin()], 1)).norm(dim=1) < 1).all())


def test_the_published_splits_of_tpt48():
    north, _ = published("tpt48", sources="north")
    states = "ND VT NH ME WA MT SD MN WI MI NY MA OR ID WY NE IA IL IN OH PA NJ CT RI"
    assert north.train.ids.tolist() == sorted(states.split())
    west, _ = published("tpt48", sources="west")
    assert west.train.ids.tolist() == ["AZ", "CA", "ID", "NV", "OR", "WA"] and len(west.test["unseen"]) == 42
