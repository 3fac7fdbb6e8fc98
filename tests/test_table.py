"""Tables of any make become the same DomainSet."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from thetafield import DomainSet
from thetafield.errors import DataError

COLUMNS = {
    "temperature": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "count": [3, 1, 4, 1, 5, 9],
    "open": [True, False, True, True, False, True],
    "label": ["wet", "dry", "wet", "wet", "dry", "dry"],
    "station": ["b", "a", "b", "c", "a", "c"],
    "lat": [1.5, 0.5, 1.5, 2.5, 0.5, 2.5],
    "lon": [10.0, 20.0, 10.0, 10.0, 20.0, 10.0],
}
ROLES = {"target": "label", "domain": "station", "descriptors": ["lat", "lon"]}


def frame(**changes):
    return pd.DataFrame(COLUMNS | changes)


def same(a, b):
    for name in ("x", "y", "z", "offsets"):
        assert torch.equal(getattr(a, name), getattr(b, name)), name
    assert a.ids.tolist() == b.ids.tolist()
    assert (a.features, a.descriptors) == (b.features, b.descriptors)
    assert a.classes.tolist() == b.classes.tolist()


MAKES = {
    "dict": COLUMNS,
    "dict of arrays": {name: np.array(values) for name, values in COLUMNS.items()},
    "pandas": pd.DataFrame(COLUMNS),
    "pandas nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas categories": pd.DataFrame(COLUMNS).astype({"station": "category", "label": "category"}),
    "pandas objects": pd.DataFrame(COLUMNS).astype({"station": object, "label": object}),
    "pandas with an index": pd.DataFrame(COLUMNS, index=list("uvwxyz")),
    "pandas of Arrow": pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame(COLUMNS),
    "polars categories": pl.DataFrame(COLUMNS).with_columns(pl.col("station", "label").cast(pl.Categorical)),
    "polars of chunks": pl.concat([pl.DataFrame(COLUMNS)[:2], pl.DataFrame(COLUMNS)[2:]], rechunk=False),
    "Arrow": pa.table(COLUMNS),
    "Arrow with pandas' index": pa.Table.from_pandas(pd.DataFrame(COLUMNS, index=pd.Index([5, 3, 1, 0, 2, 4]))),
    "Arrow with a named index": pa.Table.from_pandas(
        pd.DataFrame(COLUMNS, index=pd.Index([5, 3, 1, 0, 2, 4], name="i"))
    ),
    "Arrow large strings": pa.table(COLUMNS).cast(
        pa.schema(
            [f.with_type(pa.large_string()) if pa.types.is_string(f.type) else f for f in pa.table(COLUMNS).schema]
        )
    ),
    "Arrow dictionaries": pa.table(
        COLUMNS | {c: pa.array(COLUMNS[c]).dictionary_encode() for c in ("station", "label")}
    ),
    "Arrow decimals": pa.table(COLUMNS | {"lat": [Decimal(str(value)) for value in COLUMNS["lat"]]}),
    "Arrow chunks": pa.concat_tables([pa.table(COLUMNS)[:1], pa.table(COLUMNS)[1:4], pa.table(COLUMNS)[4:]]),
    "Arrow reader": None,
}


@pytest.mark.parametrize("make", MAKES)
def test_tables_of_any_make_give_the_same_domains(make):
    # A reader of batches can be read once only, so it is made here.
    table = pa.table(COLUMNS).to_reader() if MAKES[make] is None else MAKES[make]
    domains = DomainSet.from_frame(table, **ROLES)
    order = [1, 4, 0, 2, 3, 5]
    expected = DomainSet.from_arrays(
        np.column_stack([COLUMNS[c] for c in ("temperature", "count", "open")])[order],
        np.array(COLUMNS["label"])[order],
        domain=np.array(COLUMNS["station"])[order],
        z=[[0.5, 20], [1.5, 10], [2.5, 10]],
        descriptors=["lat", "lon"],
        features=["temperature", "count", "open"],
    )
    same(domains, expected)
    assert domains.classes.tolist() == ["dry", "wet"]


def test_features_default_to_the_rest_in_the_order_of_the_table():
    assert DomainSet.from_frame(COLUMNS, **ROLES).features == ("temperature", "count", "open")
    chosen = DomainSet.from_frame(COLUMNS, **ROLES, features=["lat", "count"])
    assert chosen.features == ("lat", "count")
    assert chosen.x[0].tolist() == [0.5, 1.0]


def test_rows_that_were_filtered_leave_no_trace_of_the_index():
    kept = frame()[lambda f: f["count"] != 4]
    assert DomainSet.from_frame(kept, **ROLES).features == ("temperature", "count", "open")
    table = pa.Table.from_pandas(kept, preserve_index=True)
    assert "__index_level_0__" in table.column_names
    assert DomainSet.from_frame(table, **ROLES).features == ("temperature", "count", "open")
    indexed = pa.Table.from_pandas(frame().set_index("station"))
    same(DomainSet.from_frame(indexed, **ROLES), DomainSet.from_frame(COLUMNS, **ROLES))


def test_domain_or_descriptors_may_be_left_out():
    by_z = DomainSet.from_frame(COLUMNS, target="label", descriptors=["lat", "lon"], features=["count"])
    by_id = DomainSet.from_frame(COLUMNS, target="label", domain="station", features=["count"])
    assert torch.equal(by_z.x, by_id.x)
    assert by_id.descriptors == ()
    assert by_z.ids.tolist() == [0, 1, 2]


def test_a_column_may_be_both_domain_and_descriptor():
    domains = DomainSet.from_frame(COLUMNS, target="label", domain="lat", descriptors=["lat"], features=["count"])
    assert domains.z[:, 0].tolist() == domains.ids.tolist() == [0.5, 1.5, 2.5]


def test_kinds_of_targets():
    def target(values, **options):
        roles = {"domain": "station", "features": ["count"]}
        return DomainSet.from_frame(COLUMNS | {"target": values}, target="target", **roles, **options)

    assert target([0, 1, 0, 1, 0, 1]).classes.tolist() == [0, 1]
    assert not target([0, 1, 0, 1, 0, 1], classification=False).classification
    assert target([True, False] * 3).classes.tolist() == [False, True]
    assert target([0.0, 1.0] * 3).y.shape == (6, 1)
    assert not target(pa.array([Decimal("0.5")] * 5 + [Decimal("1.5")])).classification
    assert target([0.0, 1.0] * 3, classification=True).classes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "lable"}, "no column 'lable'; did you mean 'label'"),
        ({"domain": "Station"}, "no column 'Station'; did you mean 'station'"),
        ({"descriptors": ["lat", "long"]}, "no column 'long'; did you mean 'lon'"),
        ({"features": ["temprature"]}, "no column 'temprature'; did you mean 'temperature'"),
        ({"domain": "Qqqq"}, "no column 'Qqqq'; valid names: count, label, lat, lon, open, station, temperature."),
    ],
)
def test_a_column_that_does_not_exist_is_named_with_the_closest(arguments, message):
    for table in (COLUMNS, frame(), pl.DataFrame(COLUMNS), pa.table(COLUMNS)):
        with pytest.raises(DataError, match=message):
            DomainSet.from_frame(table, **(ROLES | arguments))


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        ({}, {"descriptors": ["station"]}, "Descriptor 'station' is text: .* It has 'b': use it as a feature"),
        ({"day": ["2024-05-31"] * 5 + ["2024-31-05"]}, {"descriptors": ["day"]}, "in row 5, which is no date"),
        ({"day": pd.to_timedelta(range(6))}, {}, "Column 'day' holds duration.*, which is neither number, text nor"),
        ({"count": [None] * 6}, {}, "Column 'count' (has no value in any row|holds null)"),
        ({"count": [1, 2, np.inf, 1, 1, 1]}, {}, "Column 'count' is infinite in row 2"),
        ({"lat": [1.5, 0.5, 1.5, np.inf, 0.5, 2.5]}, {}, "Column 'lat' is infinite in row 3"),
        ({"lat": [1.5, 0.5, 1.5, None, 0.5, 2.5]}, {}, "Column 'lat' is missing in row 3"),
        ({"station": ["b", "a", "b", None, "a", "c"]}, {}, r"Column 'station' is missing in row 3 \(1 such rows\)"),
        (
            {"label": [None, "dry", "wet", "wet", "dry", None]},
            {},
            r"Column 'label' is missing in row 0 \(2 such rows\)",
        ),
        ({"lat": [1.5, 0.5, 1.6, 2.5, 0.5, 2.5]}, {}, "Domain 'b' has two values of descriptor 'lat' .1.5 and 1.6."),
        ({}, {"features": ["label"]}, "Column 'label' is the target"),
        ({}, {"features": []}, "No feature columns are left"),
        ({}, {"domain": None, "descriptors": []}, "Name the column that says which domain"),
        (
            {},
            {"descriptors": "lat"},
            r"descriptors is a list of columns, but got one name: write descriptors=\['lat'\]",
        ),
        ({}, {"features": "lat"}, r"features is a list of columns, but got one name: write features=\['lat'\]"),
        ({}, {"descriptors": ["lat", "lat"]}, "Descriptor 'lat' is named twice"),
    ],
)
def test_what_a_table_cannot_be(columns, arguments, message):
    with pytest.raises(DataError, match=message):
        DomainSet.from_frame(pa.Table.from_pandas(frame(**columns)), **(ROLES | arguments))
    with pytest.raises(DataError, match=message):
        DomainSet.from_frame(frame(**columns), **(ROLES | arguments))


@pytest.mark.parametrize("column", ["station", "label"])
@pytest.mark.parametrize("make", ["pandas", "polars", "Arrow"])
def test_a_missing_category_is_not_another_category(column, make):
    values = [*COLUMNS[column][:5], None]
    table = {
        "pandas": frame().assign(**{column: pd.Categorical(values)}),
        "polars": pl.DataFrame(COLUMNS | {column: values}).with_columns(pl.col(column).cast(pl.Categorical)),
        "Arrow": pa.table(COLUMNS | {column: pa.array(values).dictionary_encode()}),
    }[make]
    with pytest.raises(DataError, match=f"Column '{column}' is missing in row 5"):
        DomainSet.from_frame(table, **ROLES)


def test_nan_in_a_polars_column_is_missing():
    number = {"station": [1.0, 2.0, 1.0, float("nan"), 2.0, 3.0]}
    with pytest.raises(DataError, match="Column 'station' is missing in row 3"):
        DomainSet.from_frame(pl.DataFrame(COLUMNS | number), target="label", domain="station", features=["count"])


@pytest.mark.parametrize(
    "table",
    [
        COLUMNS | {"count": [1, 2]},
        COLUMNS | {"count": np.zeros((6, 2))},
        frame(count=np.array([1, "a", 2, 3, 4, 5], dtype=object)),
        pd.concat([frame(), frame()[["count"]]], axis=1),
    ],
    ids=["lengths", "axes", "types", "names"],
)
def test_a_table_that_arrow_cannot_read(table):
    with pytest.raises(DataError, match="The table cannot be read"):
        DomainSet.from_frame(table, **ROLES)


def test_two_columns_of_one_name():
    table = pa.table(COLUMNS)
    twice = table.append_column("count", table["lat"])
    with pytest.raises(DataError, match="The table has 2 columns 'count': rename one of them"):
        DomainSet.from_frame(twice, **ROLES)
    assert DomainSet.from_frame(twice, **ROLES, features=["open"]).features == ("open",)


def test_what_is_no_table():
    with pytest.raises(DataError, match=r"A table is expected .* but got list"):
        DomainSet.from_frame([COLUMNS], **ROLES)


def test_whole_numbers_beyond_exact_floats_are_rounded():
    domains = DomainSet.from_frame(COLUMNS | {"count": [2**60 + 1] * 6}, **ROLES)
    assert (domains.x[:, 1] == 2.0**60).all()
