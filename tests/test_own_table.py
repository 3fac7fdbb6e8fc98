"""A person's own table: text, gaps and dates become numbers that the saved field remembers."""

import datetime
import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from pyarrow import feather, parquet

from thetafield import DomainSet, FieldClassifier, FieldRegressor, load_field
from thetafield.data.columns import (
    MOST_CATEGORIES,
    CategoryColumn,
    DateColumn,
    NumberColumn,
    column_from_json,
    column_to_json,
    fit_column,
)
from thetafield.data.encoder import TableEncoder
from thetafield.datasets.own_table import OwnTable
from thetafield.errors import DataError

ROLES = {"target": "wet", "domain": "station", "descriptors": ["lat", "opened"]}


def frame(num_stations=12, rows=20, seed=0):
    stream = np.random.default_rng(seed)
    station = np.repeat([f"s{i:02d}" for i in range(num_stations)], rows)
    opened = np.repeat(pd.date_range("2019-01-15", periods=num_stations, freq="71D"), rows)
    lat = np.repeat(np.linspace(40, 60, num_stations), rows)
    wind, soil = stream.normal(size=num_stations * rows), stream.choice(["clay", "sand", "rock"], num_stations * rows)
    wet = np.where(wind * np.cos(lat / 6) + (soil == "clay") > 0.3, "yes", "no")
    table = pd.DataFrame(
        {"station": station, "lat": lat, "opened": opened, "wind": wind, "soil": soil, "dark": wind > 1, "wet": wet}
    )
    table.loc[::7, "wind"] = np.nan
    table.loc[::11, "soil"] = None
    return table


def column(values):
    return pa.chunked_array([pa.array(values)])


def test_numbers_take_the_training_median_and_say_so():
    fitted = fit_column("t", column([1.0, None, 5.0, 3.0]))
    assert fitted == NumberColumn("t", 3.0, True) and fitted.names == ("t", "t missing")
    assert fitted.encode(column([None, 2])).tolist() == [[3.0, 1.0], [2.0, 0.0]]
    whole = fit_column("t", column([1, 2]))
    assert whole.names == ("t",) and whole.encode(column([None, 7.0])).tolist() == [[1.5], [7.0]]
    assert fit_column("b", column([True, False])).encode(column([True])).tolist() == [[1.0]]


def test_text_becomes_its_training_categories():
    fitted = fit_column("soil", column(["clay", "sand", "clay", None]))
    assert fitted == CategoryColumn("soil", ("clay", "sand")) and fitted.names == ("soil=clay", "soil=sand")
    assert fitted.encode(column(["sand", "moon", None])).tolist() == [[0, 1], [0, 0], [0, 0]]
    assert fitted.encode(column(["sand"]).dictionary_encode()).tolist() == [[0, 1]]
    many = fit_column("id", column([f"v{i:03d}" for i in range(80)] + ["v079"]))
    assert len(many.categories) == MOST_CATEGORIES and many.categories[0] == "v079"


def test_dates_become_season_and_trend():
    days = [datetime.date(2020, 1, 1), datetime.date(2021, 7, 2)]
    fitted = fit_column("day", column(days))
    sine, cosine, years = fitted.encode(column(days)).T
    turn = [2 * math.pi * (d - datetime.date(1970, 1, 1)).days / 365.2425 for d in days]
    np.testing.assert_allclose(sine, np.sin(turn), atol=1e-12)
    np.testing.assert_allclose(cosine, np.cos(turn), atol=1e-12)
    np.testing.assert_allclose(years, [0, 548 / 365.2425])
    assert cosine[0] > 0.99 and cosine[1] < -0.99  # winter and summer stand opposite
    assert fitted.factors == ("day season", "day season", "day trend")
    as_text = fitted.encode(column(["2020-01-01", "2021-07-02 12:00"]))
    assert as_text[0].tolist() == pytest.approx([sine[0], cosine[0], 0.0])
    zoned = pa.chunked_array([pa.array([datetime.datetime(2020, 1, 1)], pa.timestamp("us", "UTC"))])
    np.testing.assert_allclose(fitted.encode(zoned)[0], as_text[0])


@pytest.mark.parametrize(
    ("values", "later", "message"),
    [
        ([1.0, 2.0], ["high"], "held numbers in the training rows, but has 'high'"),
        ([1.0, math.inf], None, "is infinite in row 1"),
        ([None, None], None, "(has no value in any row|neither number, text nor date)"),
        ([[1], [2]], None, "neither number, text nor date"),
        ([datetime.date(2020, 1, 1)], ["2020-13-01"], "has '2020-13-01' in row 0, which is no date"),
        ([datetime.date(2020, 1, 1)], [5.0], "held dates in the training rows, but holds double"),
        ([datetime.date(2020, 1, 1)], [None, datetime.date(2020, 1, 1)], "missing in row 0"),
    ],
)
def test_what_a_column_cannot_be(values, later, message):
    with pytest.raises(DataError, match=message):
        fitted = fit_column("c", column(values))
        fitted.encode(column(later))


def test_columns_are_remembered_as_json():
    for fitted in (NumberColumn("a", 1.5, True), CategoryColumn("b", ("x", "y")), DateColumn("c", 18262.0)):
        stored = json.loads(json.dumps(column_to_json(fitted)))
        assert column_from_json(stored) == fitted
    encoder = DomainSet.from_frame(frame(), **ROLES).encoder
    assert TableEncoder.from_json(json.loads(json.dumps(encoder.to_json()))) == encoder


@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "Arrow"])
def test_a_table_with_text_gaps_and_dates(make):
    domains = DomainSet.from_frame(make(frame()), **ROLES)
    assert set(domains.features) == {"wind", "wind missing", "soil=sand", "soil=clay", "soil=rock", "dark"}
    assert domains.descriptors == ("lat", "opened season sine", "opened season cosine", "opened years")
    assert domains.factors == ("lat", "opened season", "opened season", "opened trend")
    assert domains.x.shape == (240, 6) and len(domains) == 12 and domains.classes.tolist() == ["no", "yes"]


def test_other_rows_are_read_like_the_training_rows():
    whole = frame()
    late = whole.station >= "s08"
    train = DomainSet.from_frame(whole[~late], **ROLES)
    other = whole[late].copy()
    other["soil"] = "moon"
    other["wind"] = np.nan
    test = DomainSet.from_frame(other, like=train)
    assert test.features == train.features and test.encoder is train.encoder
    assert test.x[:, 0].unique().tolist() == pytest.approx([np.nanmedian(whole.wind[~late])])
    assert not test.x[:, [train.features.index(f"soil={s}") for s in ("clay", "sand", "rock")]].any()
    assert DomainSet.concatenate([train, test]).ids.tolist() == DomainSet.from_frame(whole, **ROLES).ids.tolist()
    other["wet"] = "perhaps"
    with pytest.raises(DataError, match="the label 'perhaps', which the training rows do not have"):
        DomainSet.from_frame(other, like=train)
    with pytest.raises(DataError, match="The table has no column 'wind'"):
        DomainSet.from_frame(other.drop(columns="wind"), like=train)
    with pytest.raises(DataError, match="these have no encoder"):
        DomainSet.from_frame(other, like=DomainSet.from_arrays(np.zeros((4, 1)), [0, 1, 0, 1], z=np.eye(4)))


def test_descriptors_from_a_table_of_places():
    whole = frame()
    places = whole[["station", "lat", "opened"]].drop_duplicates().iloc[::-1]
    rows = whole.drop(columns=["lat", "opened"])
    domains = DomainSet.from_frame(rows, **ROLES, places=places)
    expected = DomainSet.from_frame(whole, **ROLES)
    assert torch.equal(domains.z, expected.z) and torch.equal(domains.x, expected.x)
    for bad, message in (
        (places[places.station != "s03"], "Domain 's03' has rows but no line in the table of places"),
        (pd.concat([places, places[:1]]), "two rows for domain 's11'"),
        (places.drop(columns="lat"), "no column 'lat'"),
    ):
        with pytest.raises(DataError, match=message):
            DomainSet.from_frame(rows, **ROLES, places=bad)
    with pytest.raises(DataError, match="'lat' is in the table and in the table of places"):
        DomainSet.from_frame(whole, **ROLES, places=places)
    with pytest.raises(DataError, match="names the domain in both tables"):
        DomainSet.from_frame(rows, target="wet", descriptors=["lat"], places=places)


def test_the_saved_field_takes_the_same_raw_columns(tmp_path):
    whole = frame()
    est = FieldClassifier("erm-d", options={"steps": 30}, random_state=0).fit(DomainSet.from_frame(whole, **ROLES))
    est.save(tmp_path / "field")
    loaded = load_field(tmp_path / "field")
    shuffled = whole[list(reversed(whole.columns))].drop(columns=["wet", "station"])
    expected = est.predict_proba(whole)
    for table in (whole, shuffled, pl.from_pandas(shuffled), pa.Table.from_pandas(shuffled)):
        np.testing.assert_allclose(loaded.predict_proba(table), expected)
    here = {"lat": 47.0, "opened": "2020-06-01"}
    assert loaded.predict(shuffled.drop(columns=["lat", "opened"]), z=here).shape == (240,)
    assert loaded.model_at(here)(torch.zeros(2, 6)).shape == (2, 2)
    assert loaded.trust(whole[["lat", "opened"]]).shape == (240,)
    encoded = est.model_.encoder.inputs(pa.Table.from_pandas(whole))
    z = est.model_.encoder.descriptor_rows(pa.Table.from_pandas(whole))
    with pytest.raises(DataError, match="Some descriptors are dates: give z as a table or a dict with the columns lat"):
        loaded.predict(encoded, z=z)
    with pytest.raises(DataError, match="The table has no column 'soil'"):
        loaded.predict(whole.drop(columns="soil"))
    with pytest.raises(DataError, match="'opened' is missing in row 0"):
        loaded.predict(whole.assign(opened=None))


def test_a_feature_that_the_kept_domains_lack_is_left_out_of_their_fold(tmp_path):
    domain = np.repeat(np.arange(6), 4)
    rare = [1.5 if place == 5 else None for place in domain]
    columns = {"d": domain, "z": domain * 0.1, "x": np.arange(24.0), "rare": rare, "y": np.arange(24) % 2}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    own = OwnTable(str(tmp_path / "t.parquet"), "y", "d", ("z",))
    assert own.whole().features == ("x", "rare", "rare missing")
    without, with_it = own.divided(np.arange(5), "random"), own.divided(np.arange(1, 6), "random")
    assert without.train.features == without.test["random"].features == ("x",)
    assert with_it.train.features == ("x", "rare", "rare missing")


def test_regression_on_a_table_without_dates(tmp_path):
    whole = frame().assign(rain=lambda f: f.lat + f.dark)
    domains = DomainSet.from_frame(
        whole, target="rain", domain="station", descriptors=["lat"], features=["wind", "soil"]
    )
    est = FieldRegressor("erm-d", options={"steps": 20}, random_state=0).fit(domains)
    assert est.predict(whole).shape == (240,)
    np.testing.assert_allclose(est.predict(whole), est.predict(whole[["wind", "soil"]], z=whole[["lat"]]))
    assert est.predict(whole[["wind", "soil"]], z=45.0).shape == (240,)


def test_held_out_domains_teach_the_encoder_nothing(tmp_path):
    table = frame()
    table.to_parquet(tmp_path / "my.parquet")
    task = OwnTable(str(tmp_path / "my.parquet"), "wet", "station", ("lat", "opened"))
    data = task.build(0)
    held = data.test["random"]
    assert len(data.train) == 9 and len(held) == 3 and data.standardise
    assert not set(data.train.ids) & set(held.ids)
    table.loc[table.station.isin(held.ids), "wind"] = 1e6
    table.loc[table.station.isin(held.ids), "soil"] = "moon"
    table.to_parquet(tmp_path / "my.parquet")
    again = task.build(0)
    assert again.train.encoder == data.train.encoder and torch.equal(again.train.x, data.train.x)
    by_z = OwnTable(str(tmp_path / "my.parquet"), "wet", None, ("lat", "opened"), ("wind", "soil")).build(0)
    assert len(by_z.train) == 9 and len(by_z.test["random"]) == 3
    assert by_z.train.z.shape[0] + by_z.test["random"].z.shape[0] == 12
    assert (
        OwnTable(str(tmp_path / "my.parquet"), "wet", "station", ("lat",), ("wind",), holdout="time").build(0).ordered
    )


def test_a_label_that_only_held_out_domains_have(tmp_path):
    table = frame()
    table.loc[table.station == "s11", "wet"] = "flood"
    table.to_parquet(tmp_path / "my.parquet")
    task = OwnTable(str(tmp_path / "my.parquet"), "wet", "station", ("lat",), ("wind", "soil"), holdout="time")
    data = task.build(0)
    assert data.train.classes.tolist() == data.test["time"].classes.tolist() == ["flood", "no", "yes"]
    assert 0 not in data.train.y and 0 in data.test["time"].y


def test_files_of_every_kind(tmp_path):
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    parquet.write_table(table, tmp_path / "a.parquet")
    feather.write_feather(table, tmp_path / "a.arrow")
    frame().to_csv(tmp_path / "a.csv", index=False)
    sets = [
        OwnTable(str(tmp_path / f"a.{end}"), "wet", "station", ("lat", "opened")).build(0)
        for end in ("parquet", "arrow", "csv")
    ]
    for data in sets[1:]:
        torch.testing.assert_close(data.train.x, sets[0].train.x)
        torch.testing.assert_close(data.train.z, sets[0].train.z)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["nowhere.csv", "erm", "--target", "wet", "--domain", "s"],
            "There is no file nowhere.csv; valid names: broken.parquet, my.csv.",
        ),
        (["my.csv", "erm"], "Say which column of my.csv to predict: --target COLUMN"),
        (["my.csv", "erm", "--target", "wett", "--domain", "station"], "no column 'wett'; did you mean 'wet'?"),
        (["my.csv", "erm", "--target", "wet"], "Say which column of my.csv names a row's domain (--domain)"),
        (["broken.parquet", "erm", "--target", "wet", "--domain", "s"], "broken.parquet cannot be read as parquet"),
        (["two-moons", "erm", "--target", "wet"], "--target is for a table of your own"),
        (
            ["my.csv", "erm", "--target", "wet", "--domain", "station", "--holdout", "hull"],
            "--holdout is one of random, blocked, edge",
        ),
        (
            ["my.csv", "drain", "--target", "wet", "--domain", "station", "--descriptors", "lat,opened"],
            "my.csv has 4: lat",
        ),
    ],
)
def test_mistakes_on_the_command_line(words, sentence, tmp_path):
    frame().to_csv(tmp_path / "my.csv", index=False)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    command = [sys.executable, "-m", "thetafield", "train", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and sentence in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "out").exists()


def test_training_on_a_table_from_the_command_line(tmp_path):
    frame().to_csv(tmp_path / "my.csv", index=False)
    roles = ["--target", "wet", "--domain", "station", "--descriptors", "lat,opened"]
    command = [sys.executable, "-m", "thetafield", "train", "my.csv", "erm-d", *roles, "--set", "steps=30", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["dataset"] == "my.csv" and result["dataset_options"]["descriptors"] == ["lat", "opened"]
    assert len(result["per_domain"]) == 3 and list(result["groups"]) == ["random"]
    field = load_field(tmp_path / "out/my-erm-d-0/field")
    assert field.predict(frame()).shape == (240,)
