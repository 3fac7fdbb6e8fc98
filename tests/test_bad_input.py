"""What a person may get wrong: each mistake is one sentence that says what came, where, and what to do."""

import jaxtyping
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from thetafield import DomainSet, FieldClassifier, FieldRegressor
from thetafield.errors import DataError, NeedError, OptionError, ThetafieldError

X = np.arange(40.0).reshape(20, 2) % 7
Y = np.arange(20) % 2
DOMAIN = np.repeat(np.arange(4), 5)
Z = np.array([[0.0, 3.0], [1.0, 1.0], [2.0, 0.0], [5.0, 2.0]])


def put(array, index, value):
    """A copy of `array` with one entry replaced."""
    changed = np.array(array, dtype=object if value is None or isinstance(value, str) else float)
    changed[index] = value
    return changed


def one_sentence(error, *parts):
    message = str(error)
    assert isinstance(error, ThetafieldError)
    assert isinstance(error, ValueError)
    assert "\n" not in message
    assert message.endswith(".")
    assert "np." not in message, "numpy's way of writing a number is not for the reader"
    for part in parts:
        assert part in message


GOOD = {"X": X, "y": Y, "domain": DOMAIN, "z": Z}
NAMES = {"descriptors": ["lat", "lon"]}
ARRAYS = {
    "NaN in X": ({"X": put(X, (3, 1), np.nan)}, "X has NaN in row 3, column 1", "drop or impute"),
    "NaN in a named column of X": (
        {"X": pd.DataFrame(put(X, (3, 1), np.nan), columns=["a", "b"])},
        "X has NaN in row 3, column 'b'",
    ),
    "infinity in X": ({"X": put(X, (0, 0), -np.inf)}, "X has infinity in row 0, column 0", "drop or impute"),
    "too large for float32": ({"X": put(X, (2, 0), 1e39)}, "X has 1e+39, which is too large, in row 2, column 0"),
    "None in X": ({"X": put(X, (3, 1), None)}, "X has NaN in row 3, column 1", "drop or impute"),
    "NA in X": (
        {"X": pd.DataFrame({"a": pd.array([None, *range(19)], dtype="Int64"), "b": 1.0})},
        "X has NaN in row 0, column 'a'",
    ),
    "text in X": (
        {"X": pd.DataFrame({"a": 1.0, "b": ["mild"] * 20})},
        "X must hold numbers, but has 'mild' in row 0, column 'b'",
        "encode",
    ),
    "dates in X": ({"X": pd.date_range("2020", periods=20)}, "X must hold numbers, but holds times"),
    "complex X": ({"X": X + 1j}, "Complex data not supported: X"),
    "ragged X": ({"X": [[1.0, 2.0]] * 19 + [[1.0]]}, "X is ragged"),
    "sparse X": ({"X": scipy.sparse.csr_array(X)}, "X must be an array or a table", "csr_array"),
    "no array at all": ({"X": 3.0}, "X must be an array or a table", "a single value"),
    "NaN in y": ({"y": put(Y, 4, np.nan)}, "y has NaN in row 4", "drop or impute"),
    "infinity in y": ({"y": put(Y, 4, np.inf)}, "y has infinity in row 4", "drop or impute"),
    "NaN in a label": ({"y": put(Y, 4, np.nan), "classification": True}, "y is missing in row 4", "fill it in"),
    "missing label": ({"y": put(Y.astype(str), 4, None)}, "y is missing in row 4 (1 such rows)", "fill it in"),
    "dates in y": ({"y": pd.date_range("2020", periods=20)}, "y must hold numbers, but holds times"),
    "labels of two types": ({"y": put(Y, 4, "warm")}, "y mixes types"),
    "labels of two axes": ({"y": np.full((20, 2), "warm")}, "y must be one value per row, but has shape (20, 2)"),
    "targets of three axes": ({"y": np.zeros((20, 2, 2))}, "y must be a table of rows and columns"),
    "one class only": ({"y": np.ones(20, dtype=int)}, "y holds one class only (1)", "at least two classes"),
    "one text only": ({"y": ["warm"] * 20}, "y holds one class only ('warm')", "at least two classes"),
    "NaN in z": ({"z": put(Z, (1, 1), np.nan), **NAMES}, "z has NaN in row 1, column 'lon'", "drop or impute"),
    "infinity in z": ({"z": put(Z, (1, 0), np.inf)}, "z has infinity in row 1, column 0", "drop or impute"),
    "text in z": ({"z": put(Z, (1, 0), "north")}, "z must hold numbers, but has 'north' in row 1, column 0"),
    "z of three axes": ({"z": np.zeros((4, 2, 2))}, "z must be a table of rows and columns"),
    "times too close for float32": (
        {"z": 1.7e9 + 60 * np.arange(4), "descriptors": ["time"]},
        "Descriptor 'time' varies by 180 only around 1.7e+09",
        "subtract its smallest value",
    ),
    "a domain without samples": (
        {"domain": np.where(DOMAIN == 2, 1, DOMAIN)},
        "Domain 2 has a descriptor but no sample",
        "give it rows in X or leave it out of z",
    ),
    "two descriptors for a text domain": (
        {"domain": np.array(list("abcd"))[DOMAIN], "z": put(Z[DOMAIN], (7, 1), 9), **NAMES},
        "Domain 'b' has two values of descriptor 'lon' (1 and 9)",
        "constant within a domain",
    ),
    "two descriptors for a numbered domain": (
        {"z": put(Z[DOMAIN], (19, 0), 0.5)},
        "Domain 3 has two values of descriptor 'z0' (5 and 0.5)",
    ),
    "y too short": ({"y": Y[:19]}, "X has 20 rows but y has 19", "every sample needs one target"),
    "domain too short": ({"domain": DOMAIN[:19]}, "domain has 19 entries but X has 20 rows", "one per row"),
    "z of no fitting length": ({"z": Z[:3]}, "z has 3 rows, but there are 20 samples in 4 domains", "one per domain"),
    "z too short without domain": ({"z": Z, "domain": None}, "z has 4 rows but X has 20", "one z per row"),
    "z too long without domain": ({"z": np.zeros((21, 2)), "domain": None}, "z has 21 rows but X has 20"),
    "no rows": ({"X": X[:0], "y": Y[:0], "domain": DOMAIN[:0]}, "X has no rows", "at least one sample"),
    "no rows of labels": ({"X": X[:0], "y": [], "classification": True}, "X has no rows"),
    "no columns": ({"X": X[:, :0]}, "X has no columns"),
    "missing text domain": (
        {"domain": put(DOMAIN.astype(str), 6, None)},
        "domain is missing in row 6 (1 such rows)",
        "fill it in",
    ),
    "missing numbered domain": ({"domain": put(DOMAIN, 6, np.nan)}, "domain is missing in row 6"),
    "missing domain of strings": (
        {"domain": pd.Series(put(DOMAIN.astype(str), 6, None), dtype="string")},
        "domain is missing in row 6",
    ),
    "missing domain of nullable numbers": (
        {"domain": pd.Series(DOMAIN, dtype="Int64").mask(DOMAIN == 1)},
        "domain is missing in row 5 (5 such rows)",
    ),
    "missing category of domain": (
        {"domain": pd.Categorical(put(DOMAIN.astype(str), 6, None))},
        "domain is missing in row 6",
    ),
    "missing date of domain": (
        {"domain": pd.to_datetime(pd.Series(["2020"] * 19 + [None]))},
        "domain is missing in row 19",
    ),
    "domains of two types": ({"domain": put(DOMAIN, 6, "north")}, "domain mixes types"),
    "domain of two columns": ({"domain": X}, "domain must be one value per row, but has shape (20, 2)"),
    "too many descriptor names": ({"descriptors": ["a", "b", "c"]}, "3 descriptor names were given, but z has 2 col"),
    "descriptor names without z": ({"z": None, **NAMES}, "2 descriptor names were given, but z has 0 columns"),
    "a descriptor named twice": ({"descriptors": ["a", "a"]}, "Descriptor 'a' is named twice"),
    "too few factors": ({"factors": ["a"]}, "factors has 1 names, but there are 2 columns"),
    "too many features": ({"features": list("abc")}, "features has 3 names, but there are 2 columns"),
}


@pytest.mark.parametrize("mistake", ARRAYS)
def test_mistakes_in_arrays(mistake):
    changes, *parts = ARRAYS[mistake]
    arguments = GOOD | changes
    with pytest.raises(DataError) as caught:
        DomainSet.from_arrays(arguments.pop("X"), arguments.pop("y"), **arguments)
    one_sentence(caught.value, *parts)


def test_the_good_arrays_are_good():
    assert len(DomainSet.from_arrays(X, Y, domain=DOMAIN, z=Z, **NAMES)) == 4


QUICK = {"epochs": 1, "widths": (8,), "latent_dim": 4, "neighbours": 2, "samples": 4}
ESTIMATORS = {
    "infinity in z": ({"z": put(Z, (1, 0), np.inf)}, {}, DataError, "z has infinity in row 1, column 0"),
    "two descriptors for a domain": ({"z": put(Z[DOMAIN], (7, 1), 9)}, {}, DataError, "Domain 1 has two values"),
    "a domain without samples": ({"domain": np.minimum(DOMAIN, 2)}, {}, DataError, "Domain 3 has a descriptor but no"),
    "one class only": ({"y": np.ones(20, dtype=int)}, {}, DataError, "y holds one class only (1)"),
    "a constant descriptor": (
        {"z": pd.DataFrame({"lat": Z[:, 0], "alt": 3.5})},
        {},
        DataError,
        "Descriptor 'alt' has the same value (3.5) in all 4 domains",
        "leave it out",
    ),
    "more neighbours than domains": (
        {},
        {"options": QUICK | {"neighbours": 5}},
        DataError,
        "Charts of 5 neighbours need at least 6 training domains, but there are 4",
        "lower the option neighbours to 3",
    ),
    "one domain for a method of many": (
        {"z": Z[:1], "domain": np.zeros(20)},
        {},
        NeedError,
        "NeuralLio needs at least 2 training domains, but the data has 1",
    ),
    "domains without descriptors": (
        {"z": None},
        {},
        NeedError,
        "NeuralLio needs descriptors z, but none were given",
        "pass z",
    ),
    "unknown method": (
        {},
        {"method": "neuralio", "options": None},
        OptionError,
        "There is no method 'neuralio'; did you mean 'neurallio'?",
    ),
    "unknown option": ({}, {"options": {"epoch": 3}}, OptionError, "neurallio has no option 'epoch'", "'epochs'"),
    "ill-typed option": (
        {},
        {"options": {"epochs": "many"}},
        OptionError,
        "neurallio: option 'epochs' expects a whole number, but got 'many'",
    ),
    "option out of range": (
        {},
        {"options": {"base_steps": 0}},
        OptionError,
        "option 'base_steps' expects at least 1, but got 0",
    ),
    "unknown predictor": ({}, {"predictor": "mpl"}, OptionError, "There is no predictor 'mpl'; did you mean 'mlp'?"),
    "unknown predictor option": (
        {},
        {"predictor_options": {"hiden": 3}},
        OptionError,
        "mlp has no option 'hiden'; did you mean 'hidden'?",
    ),
    "unknown device": ({}, {"device": "gpu"}, OptionError, "device is one of auto, cpu or cuda, but got 'gpu'"),
    "domain too short": ({"domain": DOMAIN[:19]}, {}, DataError, "domain has 19 entries but X has 20 rows"),
    "z too short": ({"z": Z[:3]}, {}, DataError, "z has 3 rows, but there are 20 samples in 4 domains"),
    "missing domain": ({"domain": put(DOMAIN, 6, np.nan)}, {}, DataError, "domain is missing in row 6"),
}


@pytest.mark.parametrize("mistake", ESTIMATORS)
def test_mistakes_in_fitting(mistake):
    data, parameters, kind, *parts = ESTIMATORS[mistake]
    arguments = GOOD | data
    estimator = FieldClassifier("neurallio", options=QUICK, random_state=0).set_params(**parameters)
    with pytest.raises(kind) as caught:
        estimator.fit(arguments.pop("X"), arguments.pop("y"), **arguments)
    one_sentence(caught.value, *parts)
    assert not hasattr(estimator, "model_")


def test_times_far_apart_or_in_float64_are_fine():
    years = 1.7e9 + 3.2e7 * np.arange(4)
    assert len(torch.unique(DomainSet.from_arrays(X, Y, domain=DOMAIN, z=years).z)) == 4
    minutes = DomainSet.from_arrays(X, Y, domain=DOMAIN, z=1.7e9 + 60 * np.arange(4), dtype=torch.float64)
    assert minutes.z.diff(dim=0).flatten().tolist() == [60] * 3


@pytest.mark.parametrize("options", ["epochs=3", ["epochs"], 3])
def test_options_are_a_dictionary(options, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(OptionError) as caught:
        FieldClassifier("erm", options=options).fit(X, Y)
    one_sentence(caught.value, "erm: options are a dictionary", repr(options))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there():
    with pytest.raises(OptionError) as caught:
        FieldClassifier("erm", device="cuda").fit(X, Y)
    one_sentence(caught.value, "device is 'cuda', but torch sees no GPU", "use 'cpu' or 'auto'")


@pytest.fixture(scope="module")
def fitted():
    frame = pd.DataFrame(Z[DOMAIN], columns=["lat", "lon"])
    return FieldRegressor("erm-d", options={"steps": 2}, random_state=0).fit(X, Y, z=frame, domain=DOMAIN)


PREDICTIONS = {
    "z missing": (None, "fitted with descriptors (lat, lon)", "pass z"),
    "z of three columns": (np.zeros((20, 3)), "z has 3 columns, but the field was fitted with 2 (lat, lon)"),
    "z of one column": (np.zeros((20, 1)), "z has 1 columns, but the field was fitted with 2 (lat, lon)"),
    "z of three numbers": ([0.0, 1.0, 2.0], "z has 3 columns, but the field was fitted with 2 (lat, lon)"),
    "z of one number": (0.5, "z has 1 columns, but the field was fitted with 2 (lat, lon)"),
    "z of another length": (Z, "z has 4 rows, but X has 20", "give one z per row, or one for all"),
    "z of three axes": (np.zeros((20, 2, 2)), "z must be a table of rows and columns, but has shape (20, 2, 2)"),
    "NaN in z": (put(Z[DOMAIN], (8, 1), np.nan), "z has NaN in row 8, column 'lon'"),
    "infinity in one z": ([np.inf, 0.0], "z has infinity in row 0, column 'lat'"),
    "text in z": (["north", "west"], "z must hold numbers, but has 'north' in row 0, column 'lat'"),
    "other columns": (
        pd.DataFrame(Z[DOMAIN], columns=["lat", "alt"]),
        "z has columns lat, alt, but lat, lon were expected",
    ),
    "columns in another order": (
        pd.DataFrame(Z[DOMAIN], columns=["lon", "lat"]),
        "z has columns lon, lat, but lat, lon were expected",
    ),
}


@pytest.mark.parametrize("mistake", PREDICTIONS)
def test_mistakes_in_predicting(mistake, fitted):
    z, *parts = PREDICTIONS[mistake]
    with pytest.raises(DataError) as caught:
        fitted.predict(X, z=z)
    one_sentence(caught.value, *parts)


def test_mistakes_in_asking_for_one_model(fitted):
    with pytest.raises(DataError) as caught:
        fitted.model_at(Z)
    one_sentence(caught.value, "model_at gives the model of one descriptor, but z has 4 rows", "pass one")
    for z in (None, [1.0], np.nan):
        with pytest.raises(DataError) as caught:
            fitted.model_at(z)
        one_sentence(caught.value, "z ")


def test_mistakes_in_asking_for_the_field(fitted):
    for z in (3.0, np.zeros((5, 4, 3)), np.zeros(3), [["a", "b"]], np.full((2, 2), np.nan)):
        with pytest.raises(DataError) as caught:
            fitted.field_(z)
        one_sentence(caught.value, "z ")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["X", "y"])
def test_scikit_learn_finds_the_holes_first(value, where):
    """Its own words for X and y are good enough, and its checks ask for them."""
    bad = {"X": put(X, (3, 1), value), "y": Y} if where == "X" else {"X": X, "y": put(Y, 4, value)}
    with pytest.raises(ValueError, match=f"{where} contains (NaN|infinity)"):
        FieldRegressor("erm", options={"steps": 2}).fit(bad["X"], bad["y"])


def test_a_column_that_does_not_exist():
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y, station=DOMAIN, lat=Z[DOMAIN, 0])
    roles = {"target": "y", "domain": "station", "descriptors": ["lat"]}
    mistakes = {"target": ("yy", "y"), "domain": ("staton", "station"), "descriptors": ("lt", "lat")}
    for role, (wrong, close) in mistakes.items():
        with pytest.raises(DataError) as caught:
            DomainSet.from_frame(frame, **(roles | {role: [wrong] if role == "descriptors" else wrong}))
        one_sentence(caught.value, f"no column {wrong!r}", f"did you mean {close!r}")
