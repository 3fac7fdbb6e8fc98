"""Datasets: miniature files in the published format through the real path, and the real files where they are."""

from datetime import date, timedelta

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from thetafield.datasets import DATASETS
from thetafield.datasets.root import AbsentError, data_root
from thetafield.errors import DataError
from thetafield.testing import check_dataset

ELEC2 = "elec2/elec2_clean.csv"
HOUSING = "housing/canberra_raw_sales.csv"
HALF_HOURS = 6


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("THETAFIELD_DATA", str(tmp_path))
    return tmp_path


def write(root, relative, header, rows):
    path = root / relative
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def domain_slice(domains, i):
    return slice(int(domains.offsets[i]), int(domains.offsets[i + 1]))


def assert_same(first, second):
    for part in ("x", "y", "z", "offsets"):
        assert torch.equal(getattr(first, part), getattr(second, part)), part


def elec2_rows(num_days=140, first=date(1997, 9, 7), swapped=()):
    """Six samples a day in the published columns; days in `swapped` are stamped YYDDMM, as four weeks there are."""
    stream = np.random.default_rng(0)
    rows = []
    for number in range(num_days):
        day = first + timedelta(number)
        stamp = f"{day:%y%d%m}" if number in swapped else f"{day:%y%m%d}"
        for half_hour in range(1, HALF_HOURS + 1):
            price, other = stream.integers(500, 3000, 2)
            demand = stream.integers(4000, 9000, 2)
            label = f" {int(price > 1500)}"  # the published file has a space before the label
            rows.append(
                [stamp, day.isoweekday() % 7 + 1, half_hour, price, demand[0], other, demand[1], half_hour - 3, label]
            )
    return rows


def write_elec2(root, rows):
    return write(root, ELEC2, "Time,Feat1,Feat2,Feat3,Feat4,Feat5,Feat6,Feat7,Y", rows)


def housing_rows(num_quarters=10, sales=30):
    """Sales of 2007 and later; the later half knows a postcode that training has not seen."""
    rows = []
    for quarter in range(num_quarters):
        for sale in range(sales):
            sold = f"{quarter % 4 * 3 + 1 + sale % 3}/{sale % 28 + 1}/{2007 + quarter // 4} 0:00"
            postcode = 2914 if quarter > 7 and sale % 5 == 0 else (2600, 2607)[sale % 2]
            price = 300_000 + 1000 * sale + 20_000 * quarter
            rows.append([sold, postcode, price, ("house", "unit")[sale % 3 // 2], 1 + sale % 4])
    return rows


def write_housing(root, rows):
    return write(root, HOUSING, "datesold,postcode,price,propertyType,bedrooms", rows)


def test_the_data_root(monkeypatch, tmp_path):
    monkeypatch.setenv("THETAFIELD_DATA", str(tmp_path))
    assert data_root() == tmp_path
    monkeypatch.delenv("THETAFIELD_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_root() == tmp_path / "cache" / "thetafield" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_root() == tmp_path / ".cache" / "thetafield" / "data"


@pytest.mark.parametrize(("name", "relative"), [("elec2", ELEC2), ("housing", HOUSING)])
def test_a_missing_file_says_where_it_was_looked_for(root, name, relative):
    with pytest.raises(AbsentError) as caught:
        DATASETS[name](0)
    for word in (name, str(root / relative), "GitHub BaiTheBest/DRAIN", "THETAFIELD_DATA", "--data-dir"):
        assert word in str(caught.value)


def test_elec2_domains_times_and_targets(root):
    rows = elec2_rows()
    write_elec2(root, rows)
    data = DATASETS["elec2"](0)
    past, future = data.train, data.test["future"]
    assert data.ordered and past.descriptors == ("time",) and list(data.test) == ["future"]
    assert past.z.ravel().tolist() == [0, 14, 28, 42, 56, 70, 84]
    assert future.z.ravel().tolist() == [98, 112, 126]
    assert past.ids[[0, 1]].tolist() == ["1997-09-07", "1997-09-21"] and future.ids[-1] == "1998-01-11"
    assert set(past.sizes.tolist()) == {14 * HALF_HOURS}
    labels = [int(row[-1]) for row in rows]
    assert past.classes.tolist() == [0, 1]
    assert torch.cat([past.y, future.y]).tolist() == labels


def test_elec2_standardises_log_prices_by_training_rows(root):
    rows = elec2_rows()
    write_elec2(root, rows)
    data = DATASETS["elec2"](0)
    raw = np.array([row[1:8] for row in rows], dtype=float)
    raw[:, [2, 4]] = np.log(1 + raw[:, [2, 4]])
    known = raw[: 7 * 14 * HALF_HOURS]
    expected = (raw - known.mean(0)) / known.std(0)
    assert_allclose(torch.cat([data.train.x, data.test["future"].x]), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["elec2", "housing"])
def test_the_future_never_changes_the_past(root, name):
    rows, keep, column = (elec2_rows(), write_elec2, 3) if name == "elec2" else (housing_rows(), write_housing, 4)
    keep(root, rows)
    before = DATASETS[name](0)
    for row in rows[-20:]:
        row[column] *= 50
    keep(root, rows)
    after = DATASETS[name](0)
    assert_same(before.train, after.train)
    assert not torch.equal(before.test["future"].x, after.test["future"].x)


def test_elec2_reads_days_and_months_in_either_order(root):
    write_elec2(root, elec2_rows())
    plain = DATASETS["elec2"](0)
    # 12 to 18 October 1997 as in the published file: 971210 then also stands for 10 December.
    write_elec2(root, elec2_rows(swapped=range(35, 42)))
    swapped = DATASETS["elec2"](0)
    assert_same(plain.train, swapped.train)
    assert_same(plain.test["future"], swapped.test["future"])
    assert plain.train.ids.tolist() == swapped.train.ids.tolist()


def test_elec2_drops_a_last_domain_of_a_handful(root):
    write_elec2(root, elec2_rows(num_days=140 + 3))
    assert DATASETS["elec2"](0).test["future"].z[-1] == 126
    write_elec2(root, elec2_rows(num_days=140 + 4))
    partial = DATASETS["elec2"](0).test["future"]
    assert partial.z[-1] == 140 and partial.sizes[-1] == 4 * HALF_HOURS


def test_elec2_takes_the_length_of_a_domain(root):
    write_elec2(root, elec2_rows())
    assert DATASETS["elec2"](0, days=7).train.z.ravel().tolist() == list(range(0, 98, 7))
    with pytest.raises(DataError, match="days=140 makes 1: choose fewer days"):
        DATASETS["elec2"](0, days=140)


def test_housing_domains_times_and_targets(root):
    rows = housing_rows()
    # Rows are not in order of time in the published file: units follow houses.
    write_housing(root, rows[::-1])
    data = DATASETS["housing"](0)
    past, future = data.train, data.test["future"]
    assert data.ordered and past.descriptors == ("time",)
    assert past.z.ravel().tolist() == [2007 + quarter / 4 for quarter in range(7)]
    assert future.z.ravel().tolist() == [2008.75, 2009, 2009.25]
    assert past.ids[[0, -1]].tolist() == ["2007Q1", "2008Q3"] and future.ids.tolist() == ["2008Q4", "2009Q1", "2009Q2"]
    assert past.classes is None and past.y.shape == (7 * 30, 1)
    for quarter in range(7):
        prices = sorted(row[2] / 1000 for row in rows[30 * quarter : 30 * quarter + 30])
        assert sorted(past.y[domain_slice(past, quarter)].ravel().tolist()) == prices


def test_housing_inputs(root):
    rows = housing_rows()
    write_housing(root, rows)
    data = DATASETS["housing"](0)
    past, future = data.train, data.test["future"]
    assert past.features == ("bedrooms", "house", "unit", "postcode 2600", "postcode 2607")
    bedrooms = np.array([row[4] for row in rows], dtype=float)
    expected = (bedrooms - bedrooms[:210].mean()) / bedrooms[:210].std()
    # Within a period rows keep the order of the file.
    assert_allclose(torch.cat([past.x, future.x])[:, 0], expected, atol=1e-5)
    assert past.x[:, 1:3].sum(1).eq(1).all() and past.x[:, 3:].sum(1).eq(1).all()
    unseen = torch.tensor([row[1] == 2914 for row in rows[210:]])
    assert unseen.any() and torch.equal(future.x[:, 3:].sum(1), (~unseen).float())


def test_housing_leaves_out_bad_rows_and_thin_periods(root):
    write_housing(root, housing_rows())
    clean = DATASETS["housing"](0)
    bad = [
        ["1/5/2007 0:00", 2600, 56_500, "house", 4],
        ["1/5/2007 0:00", 2600, 500_000, "house", 0],
        ["1/5/2007 0:00", 2600, "", "house", 4],
        ["1/5/2007 0:00", 2600, 500_000, "", 4],
        ["7/5/2009 0:00", 2600, 500_000, "house", 4],
    ]
    write_housing(root, bad + housing_rows())
    dirty = DATASETS["housing"](0)
    assert_same(clean.train, dirty.train)
    assert_same(clean.test["future"], dirty.test["future"])


def test_housing_by_year(root):
    write_housing(root, housing_rows(num_quarters=12))
    data = DATASETS["housing"](0, period="year")
    assert data.train.ids.tolist() == ["2007", "2008"] and data.train.z.ravel().tolist() == [2007, 2008]
    assert data.test["future"].ids.tolist() == ["2009"]


def spoiled(rows, row, column, value):
    rows[row][column] = value
    return rows


@pytest.mark.parametrize(
    ("rows", "finding"),
    [
        ([row[:-1] for row in elec2_rows(20)], "Expected 9 columns"),
        (spoiled(elec2_rows(20), 5, 3, "dear"), "dear"),
        (spoiled(elec2_rows(20), 5, 3, ""), "column Feat3 has 1 missing values"),
        (spoiled(elec2_rows(20), 5, 3, -7), "a price is negative"),
        (spoiled(elec2_rows(20), 5, 8, 2), "Y is not 0 or 1"),
        (spoiled(elec2_rows(20), 6, 0, 979999), "Time 979999 of row 6"),
        (elec2_rows(20)[::-1], "is no day after the one before it"),
        ([], "it has no rows"),
    ],
)
def test_a_damaged_elec2_is_named(root, rows, finding):
    path = write_elec2(root, rows)
    with pytest.raises(DataError) as caught:
        DATASETS["elec2"](0)
    message = str(caught.value)
    assert str(path) in message and finding in message and "Time (int64)" in message
    assert not isinstance(caught.value, AbsentError) and "\n" not in message


@pytest.mark.parametrize(
    ("rows", "finding"),
    [
        (spoiled(housing_rows(), 5, 0, "2007-02-31"), "2007-02-31"),
        (spoiled(housing_rows(), 5, 2, "dear"), "dear"),
        (housing_rows(num_quarters=1), "needs two to split"),
    ],
)
def test_a_damaged_housing_is_named(root, rows, finding):
    path = write_housing(root, rows)
    with pytest.raises(DataError) as caught:
        DATASETS["housing"](0)
    assert str(path) in str(caught.value) and finding in str(caught.value)


@pytest.mark.parametrize(("name", "relative"), [("elec2", ELEC2), ("housing", HOUSING)])
@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", bytes(range(256)) * 4], ids=["empty", "columns", "binary"])
def test_a_file_of_another_kind_is_named(root, name, relative, content):
    path = root / relative
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"is damaged .* expected the published CSV with the columns") as caught:
        DATASETS[name](0)
    assert str(path) in str(caught.value)


def test_moons_over_time_train_on_the_past():
    data = DATASETS["two-moons-time"](3)
    past, future = data.train.z.ravel(), data.test["future"].z.ravel()
    assert data.ordered and data.train.descriptors == ("time",) and len(past) == 50 and len(future) == 150
    assert past[0] == 0 and past[-1] == 35 and future[0] > 35 and future[-1] <= 50
    assert bool((past.diff() > 0).all()) and bool((future.diff() > 0).all())
    assert len(DATASETS["two-moons-time"](3, num_train=1).train) == 1


def test_heads_are_as_large_as_they_are_asked_to_be():
    check_dataset("two-moons-wide")
    for parameters in (3000, 300_000, 9_000_000):
        data = DATASETS["two-moons-wide"](0, parameters=parameters, num_train=3, num_test=2)
        first, second = data.predictor_options["hidden"]
        assert first == second and first**2 + 6 * first + 2 == pytest.approx(parameters, rel=0.02)
    wide, plain = DATASETS["two-moons-wide"](0), DATASETS["two-moons"](0)
    assert_same(wide.train, plain.train)
    assert wide.predictor_options == plain.predictor_options


def test_moons_over_time_turn_by_18_degrees():
    """The arrow from the middle of one moon to that of the other, as a complex number, turns by π / 10 per unit."""
    data = DATASETS["two-moons-time"](3)
    # The mean height of a half circle is 2 / π: the upper moon's middle is 2i / π, the lower one's 1 + (1/2 − 2 / π)i.
    arrow = 1 + 0.5j - 4j / np.pi
    for domains in (data.train, data.test["future"]):
        x = domains.x.view(len(domains), 2, 500, 2).double().numpy()
        assert domains.y.view(len(domains), 2, 500)[:, 1].all()
        middles = (x[..., 0] + 1j * x[..., 1]).mean(2)
        turned = arrow * np.exp(1j * np.pi / 10 * domains.z.ravel().double().numpy())
        assert_allclose(middles[:, 1] - middles[:, 0], turned, atol=0.03)


def test_more_test_moons_never_change_the_training_ones():
    assert_same(DATASETS["two-moons-time"](0).train, DATASETS["two-moons-time"](0, num_test=7).train)


@pytest.mark.parametrize("name", ["elec2", "housing"])
def test_the_published_file(name):
    try:
        check_dataset(name)
    except AbsentError as absent:
        pytest.skip(str(absent))


def test_the_published_elec2_has_every_day():
    """41 × 14 days, although four weeks of them are stamped in another order."""
    try:
        data = DATASETS["elec2"](0, days=1)
    except AbsentError as absent:
        pytest.skip(str(absent))
    times = torch.cat([data.train.z, data.test["future"].z]).ravel()
    assert times.tolist() == list(range(574))
