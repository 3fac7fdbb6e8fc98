"""What a person may get wrong with a comparison: a clear sentence before any training, or a warning in the result."""

import io
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from rich.console import Console

from compared import domain_set, table_file
from thetafield import DomainSet
from thetafield.cli.compare import compare
from thetafield.compare import compare as compare_domains
from thetafield.compare import folder
from thetafield.compare.checks import check_domains, warnings_of
from thetafield.data.table import read_table_file
from thetafield.datasets.own_table import OwnTable
from thetafield.errors import DataError, FormatError, ThetafieldError
from thetafield.report.compare.reading import Comparison
from thetafield.report.compare.terminal import leaderboard_table

ROLES = {"target": "y", "domain": "d", "descriptors": "z"}


def table(**columns):
    """Sixty rows in six domains; given columns take the place of these."""
    stream = np.random.default_rng(0)
    domain = np.repeat(np.arange(6), 10)
    plain = {
        "d": domain,
        "z": np.linspace(0, 1, 6)[domain],
        "x": stream.normal(size=60),
        "y": stream.choice(["no", "yes"], 60),
    }
    return pa.table(plain | columns)


def refusal(tmp_path, content, **settings):
    """Run the command on a table and return the sentence with which it ends."""
    path = tmp_path / "t.csv"
    if isinstance(content, pa.Table):
        csv.write_csv(content, path)
    else:
        path.write_bytes(content)
    with pytest.raises(ThetafieldError) as caught:
        compare(path, out=tmp_path / "out", **(ROLES | settings))
    error = caught.value
    assert "\n" not in str(error) and str(error).endswith("."), error
    assert not (tmp_path / "out").exists()
    return str(error)


@pytest.mark.parametrize(
    ("columns", "settings", "sentence"),
    [
        ({"y": ["yes"] * 60}, {}, "y holds one class only"),
        ({"y": [2.5] * 60}, {}, "The target is 2.5 in every row: there is nothing to predict"),
        ({"d": range(60), "z": range(60)}, {}, "60 rows make 60 domains (the values of 'd'), about one row each"),
        ({"d": [1] * 60, "z": [0.5] * 60}, {}, "There is 1 domain"),
        ({"d": np.repeat(range(4), 15), "z": np.repeat(range(4), 15)}, {}, "needs at least 5"),
        ({}, {"descriptors": "y"}, "'y' is the target and cannot be a feature or a descriptor too"),
        ({}, {"features": "x,y"}, "'y' is the target and cannot be a feature"),
        ({}, {"target": "yy"}, "no column 'yy'; did you mean 'y'?"),
        ({}, {"methods": "erm,neuralio"}, "There is no method 'neuralio'; did you mean 'neurallio'?"),
        ({}, {"folds": "temporal"}, "folds are one of random, blocked, edge, time, but got 'temporal'"),
        ({"w": np.repeat(range(6), 10)}, {"descriptors": "z,w", "folds": "time"}, "time folds need one ordered"),
        ({}, {"budget": 0.0}, "The budget is a number of minutes above zero"),
        ({"z": np.arange(60.0)}, {}, "z"),  # it differs within a domain
        ({"z": ["a", *["b"] * 59]}, {}, "Descriptor 'z' is text"),
    ],
)
def test_a_table_that_cannot_be_compared_is_refused(columns, settings, sentence, tmp_path):
    assert sentence in refusal(tmp_path, table(**columns), **settings)


def test_a_descriptor_that_gives_the_target_away_is_refused(tmp_path):
    domain = np.repeat(np.arange(6), 10)
    number = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.6])[domain]
    assert "'z' gives the target away" in refusal(tmp_path, table(y=number, z=number))
    assert "'z' gives the target away" in refusal(tmp_path, table(y=number, z=np.exp(number)))
    label = np.array(["a", "b", "c", "a", "c", "b"])[domain]
    code = np.array([0, 1, 2, 0, 2, 1])[domain]
    assert "'z' gives the target away" in refusal(tmp_path, table(y=label, z=code))
    year = np.arange(2015, 2021)[domain]
    assert "one label, which no other has" in refusal(tmp_path, table(y=year, z=year))
    assert "'d' is the target and cannot name the domains too" in refusal(tmp_path, table(), target="d")
    free = domain_set("turning")
    check_domains(free, "place")  # a descriptor that merely matters is none


def test_a_leak_is_told_before_anything_is_trained(tmp_path):
    labels = np.random.default_rng(0).choice(["no", "yes"], 60)
    csv.write_csv(table(y=labels, x=(labels == "yes") + 0.0), tmp_path / "t.csv")
    told = []

    def workers(jobs):
        raise RuntimeError(" ".join(told))

    own = OwnTable(str(tmp_path / "t.csv"), "y", "d", ("z",), holdout=None)
    with pytest.raises(RuntimeError, match="'x' alone"):
        compare_domains(own, tmp_path / "out", methods=("erm",), warn=told.append, hire=workers)


def test_labels_that_lie_in_order_by_chance_are_no_giveaway():
    def described(count, labels, z):
        domain = np.repeat(np.arange(count), 4)
        x = np.random.default_rng(0).normal(size=(4 * count, 1))
        return DomainSet.from_arrays(x, np.array(labels)[domain], domain=domain, z=z)

    ordered = np.arange(12.0)[:, None]
    check_domains(described(9, ["a"] * 4 + ["b"] * 5, ordered[:9]), "d")
    check_domains(described(12, ["a"] * 11 + ["b"], ordered), "d")  # one of twelve is the last often enough
    with pytest.raises(DataError, match="'z0' gives the target away"):
        check_domains(described(12, ["a"] * 6 + ["b"] * 6, ordered), "d")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"d,z,x,y\n", "column names and no rows"),
        (b"d,z,x,y\n1,2\n", "cannot be read as csv"),
        (b"d,z,x,y\n1,2,\x00\x07,a\n", "bytes that no text has: save it as CSV in UTF-8"),
    ],
)
def test_an_empty_or_broken_file_is_refused(content, sentence, tmp_path):
    assert sentence in refusal(tmp_path, content)


def test_descriptors_may_be_called_as_the_columns_of_a_comparison_are(tmp_path):
    x, y, domain = np.zeros((12, 1)), np.arange(12) % 2, np.repeat(np.arange(6), 2)
    z = np.arange(12.0).reshape(6, 2)
    domains = DomainSet.from_arrays(x, y, domain=domain, z=z, descriptors=["distance", "fold"])
    found = {"fold": np.arange(6), "distance": np.full(6, 0.5), "trust": np.full(6, 0.25)}
    folder.write_domains(tmp_path, domains, found)
    described = {"verdict": {}, "leaderboard": [], "data": {"descriptors": ["distance", "fold"]}}
    (tmp_path / "result.json").write_text(json.dumps(described))
    read = Comparison.read(tmp_path)
    assert read.z["distance"].tolist() == z[:, 0].tolist() and read.z["fold"].tolist() == z[:, 1].tolist()
    assert read.columns["distance"].tolist() == [0.5] * 6 and {*read.columns} == {"rows", "distance", "trust"}


@pytest.mark.parametrize("encoding", ["cp850", "cp1250", "cp1251", "shift-jis"])
def test_what_nobody_can_know_is_read_by_its_bytes(encoding, tmp_path):
    words = {"cp1251": ["ђорђе", "ђорђа"], "shift-jis": ["東京", "京都"]}.get(encoding, ["Zürich", "Zurich"])
    lines = ["place,x", *(f"{word},{number}" for number, word in enumerate(words * 2))]
    (tmp_path / "t.csv").write_bytes("\n".join(lines).encode(encoding))
    found = read_table_file(tmp_path / "t.csv").to_pydict()
    assert found["place"][0] == found["place"][2] != found["place"][1] and found["x"] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("separator", "encoding"), [(";", "utf-8"), ("\t", "cp1252"), ("|", "utf-16"), (",", "utf-8-sig")]
)
def test_other_separators_and_encodings_are_read(separator, encoding, tmp_path):
    plain = read_table_file(table_file(tmp_path / "plain.csv", num_domains=5))
    assert plain.column_names[-1] == "größe"
    other = read_table_file(table_file(tmp_path / "t.csv", separator=separator, encoding=encoding, num_domains=5))
    assert other.equals(plain)


def test_thousands_that_are_set_apart_are_numbers_where_all_of_a_column_are(tmp_path):
    (tmp_path / "t.csv").write_text('a,b,c,d\n"1,003",x,"1,5","1,234.5"\n7,"2,000","2,5",-12\n,z,"3,5","1,234,567"\n')
    found = read_table_file(tmp_path / "t.csv").to_pydict()
    assert found["a"] == [1003, 7, None] and found["d"] == [1234.5, -12.0, 1234567.0]
    assert found["b"] == ["x", "2,000", "z"] and found["c"] == ["1,5", "2,5", "3,5"]  # names, and who knows what
    (tmp_path / "t.csv").write_text("a;b\n1.003,5;0,5\n7;1,5\n")
    assert read_table_file(tmp_path / "t.csv").to_pydict() == {"a": [1003.5, 7.0], "b": [0.5, 1.5]}
    (tmp_path / "t.csv").write_text("a;b\n1.003;0,5\n7;1,25\n")
    assert read_table_file(tmp_path / "t.csv").to_pydict() == {"a": [1003, 7], "b": [0.5, 1.25]}


@pytest.mark.parametrize("text", ["a\tb\n1,375\tx\n2,250\ty\n", "a\tb\n0,125\t0.5\n1,375\t1.5\n"])
def test_what_may_be_a_decimal_comma_stays_text(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    assert all(isinstance(value, str) for value in read_table_file(tmp_path / "t.csv")["a"].to_pylist())


def test_text_that_looks_like_numbers_is_warned_of():
    count = np.repeat(["1,375", "2,250", "3,125"], 20)
    [sentence] = warnings_of(read(table(count=count)))
    assert sentence.startswith("Feature 'count' holds text such as '1,375'") and "3 categories" in sentence
    assert not warnings_of(read(table(code=np.repeat(["01", "02", "10"], 20))))


def test_texts_among_numbers_are_named():
    depth = np.arange(60).astype(str).astype(object)
    depth[[7, 30]] = "broken", "n/k"
    [sentence] = warnings_of(read(table(depth=depth)))
    assert sentence.startswith("Feature 'depth' has numbers, but also 'broken', 'n/k', so that all of it is taken for")
    few = np.repeat(["1", "2", "?"], [30, 29, 1])
    assert "'?'" in warnings_of(read(table(few=few)))[0]
    assert not warnings_of(read(table(soil=np.repeat(["1", "clay", "sand"], 20))))


def test_a_descriptor_with_one_value_is_refused_before_anything_runs(tmp_path):
    assert "Descriptor 'z' has the same value (3) in all 6" in refusal(tmp_path, table(z=np.full(60, 3.0)))
    assert not (tmp_path / "out").exists()


def test_decimal_commas_are_read_where_semicolons_separate(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1,5;x,y\n-2,25;z\n")
    assert read_table_file(tmp_path / "t.csv").to_pydict() == {"a": [1.5, -2.25], "b": ["x,y", "z"]}
    (tmp_path / "t.csv").write_text("a;b\n1.5;2,5\n2.5;3\n")
    assert read_table_file(tmp_path / "t.csv")["a"].to_pylist() == [1.5, 2.5]


def read(content, **settings):
    return DomainSet.from_frame(content, target="y", domain="d", descriptors=["z"], **settings)


def test_a_feature_that_leaks_is_warned_of():
    stream = np.random.default_rng(0)
    y = stream.choice(["no", "yes"], 60)
    [warning] = warnings_of(read(table(y=y, x=np.where(y == "yes", 1.0, 0.0))))
    assert "Feature 'x' alone predicts the target almost perfectly" in warning
    number = stream.normal(size=60)
    [warning] = warnings_of(read(table(y=number, x=3 * number + 1)))
    assert "Feature 'x' alone" in warning
    assert not warnings_of(read(table(y=number)))
    assert not warnings_of(read(table()))


def test_inputs_that_look_like_descriptors_are_told():
    domain = np.repeat(np.arange(6), 10)
    depth, age = np.array([3.0, 1, 4, 1, 5, 9])[domain], np.arange(6)[domain]
    [warning] = warnings_of(read(table(depth_m=depth)))
    assert warning == (
        "depth_m does not vary within a domain and is used as an input: if it describes the domain, list it in "
        "--descriptors."
    )
    soil = np.array(list("abcdef"))[domain]  # text cannot be a descriptor
    [warning] = warnings_of(read(table(depth_m=depth, soil=soil, age_years=age)))
    assert warning.startswith("depth_m and age_years do not vary within a domain and are used as inputs: if they")
    day = (np.datetime64("2020-01-01") + 40 * np.arange(6))[domain]
    assert warnings_of(read(table(opened=day)))[0].startswith("opened does not vary within a domain")
    moved = depth.copy()
    moved[3] += 1
    assert not warnings_of(read(table(moved=moved, never=np.ones(60), two=age % 2)))
    assert not warnings_of(read(table(), features=["x", "z"]))  # a descriptor already
    many = {f"c{i}": age + i for i in range(9)}
    assert "c0, c1, c2, c3, c4 and 4 others do not vary" in warnings_of(read(table(**many)))[0]


def test_a_million_categories_and_mixed_types_are_told(tmp_path):
    names = [f"name {i}" for i in range(60)]
    [warning] = warnings_of(read(table(x=names)))
    assert "Feature 'x' is text with 50 different values or more" in warning
    # Numbers among which there is text are text, and so are their labels.
    mixed = [*map(str, range(59)), "none"]
    path = tmp_path / "t.csv"
    csv.write_csv(table(x=mixed), path)
    assert "Feature 'x' has numbers, but also 'none'" in warnings_of(read(read_table_file(path)))[0]
    many = pa.table(
        {"d": np.arange(400) % 8, "z": np.arange(400) % 8, "x": np.arange(400.0), "y": [f"l{i}" for i in range(400)]}
    )
    with pytest.raises(DataError, match="400 different labels"):
        check_domains(read(many), "d")


def test_a_folder_of_something_else_is_not_touched(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("kept")
    parquet.write_table(table(), tmp_path / "t.parquet")
    with pytest.raises(ThetafieldError, match="holds something else than a comparison"):
        compare(tmp_path / "t.parquet", out=tmp_path / "out", **ROLES)
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["mine.txt"]
    with pytest.raises(ThetafieldError, match="--domain"):
        compare(tmp_path / "t.parquet", out=tmp_path / "new", target="y")


def test_another_comparison_is_told_by_what_differs(tmp_path):
    roles = {"path": "/t.csv", "target": "y", "domain": "d", "descriptors": ["lat", "lon"], "features": None}
    about = {"data": "t.csv", "roles": roles, "digest": "1", "methods": ["erm"], "options": {"erm": {}}, "budget": 1.0}
    folder.claim(tmp_path / "out", about)
    folder.claim(tmp_path / "out", about)
    (tmp_path / "out" / folder.PLAN).write_text("{}")
    other = {"roles": roles | {"descriptors": ["lat"], "features": ["x"]}, "digest": "2"}
    for changed, words in (
        (other, "descriptors lat,lon, not lat; features none, not x:"),
        ({"data": "u.csv", "roles": roles | {"path": "/u.csv"}, "digest": "2"}, "table '/t.csv', not '/u.csv':"),
        ({"digest": "2"}, "other data:"),
        ({"methods": ["erm", "nda"], "options": {"erm": {}, "nda": {}}}, "methods erm, not erm,nda:"),
        ({"options": {"erm": {"steps": 3}}}, "options of erm none, not {'steps': 3}:"),
        ({"budget": 2.0}, "budget 1.0, not 2.0:"),
    ):
        with pytest.raises(FormatError, match=re.escape(f"holds a comparison of {words} name another folder")):
            folder.claim(tmp_path / "out", about | changed)


def test_the_table_of_domains_has_no_noise_of_single_precision(tmp_path):
    days = np.array(["2020-01-01", "2020-03-01"], dtype="datetime64[ns]")
    domains = DomainSet.from_arrays(
        np.arange(8.0)[:, None], [0, 1] * 4, domain=days[np.repeat([0, 1], 4)], z=[[97.6, 5.0], [1e-7, -3.25]]
    )
    folder.write_domains(tmp_path, domains, {"fold": np.array(["1", ""]), "error": np.array([1 / 3, np.nan])})
    lines = (tmp_path / folder.TABLE).read_text().split("\n")
    assert lines[0] == "domain,z0,z1,rows,fold,error"
    assert re.fullmatch(r"2020-01-01[T0:.]*,97\.6,5,4,1,0\.333333", lines[1])
    assert re.fullmatch(r"2020-03-01[T0:.]*,1e-07,-3\.25,4,,", lines[2])


def test_the_leaderboard_fits_into_eighty_columns():
    lines = [
        {"method": method, "error": error, "low": error - 2.2, "high": error + 2.2, "worst_decile": 2 * error}
        | {"seconds": 31.2, "reads_descriptors": method != "trees-x"}
        for method, error in (("neurallio", 80.4238), ("trees-x", 1093.21))
    ]
    result = {"metric": "mae", "leaderboard": lines, "method": "neurallio", "dataset": "wells.csv"}
    result |= {"data": {"judged": 50, "domains": 50}, "folds": {"count": 5, "kind": "random"}}
    console = Console(width=80, file=io.StringIO())
    console.print(leaderboard_table(result))
    text = console.file.getvalue()
    for words in ("trees-x (ignores z)", "78.22 to 82.62", "1091.01 to 1095.41", "seconds"):
        assert words in text
