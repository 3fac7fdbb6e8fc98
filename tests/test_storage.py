"""Saved fields: bit for bit, and refused when anything is amiss."""

import json
import shutil
import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from thetafield import FieldClassifier, FieldRegressor, __version__, load_field
from thetafield.errors import DataError, FormatError
from thetafield.fields import storage
from thetafield.fields.base import FIELDS
from thetafield.fields.storage import FORMAT

QUICK = {
    "erm": {"steps": 20},
    "erm-d": {"steps": 20, "hidden": (8,)},
    "nda": {"steps": 20, "tune_steps": 5},
    "neurallio": {"epochs": 2, "base_steps": 20, "tune_steps": 5, "latent_dim": 4, "neighbours": 2, "samples": 8},
    "neurallio-paper": {"epochs": 2, "widths": (16, 8), "latent_dim": 4, "neighbours": 2},
    "film": {"steps": 20, "hidden": (8,)},
    "hypernet": {"steps": 20, "hidden": (8,), "widths": (16, 8), "latent_dim": 4},
    "interpolate": {"steps": 20, "tune_steps": 5, "neighbours": 3},
}
TEMPORAL = {"flow", "sequence"}  # along one ordered coordinate: saved and loaded in test_temporal.py
RNG = np.random.default_rng(0)
DOMAIN = np.repeat(np.arange(5), 12)
Z = RNG.uniform(size=(5, 2))[DOMAIN]
X = RNG.normal(size=(60, 3))
NUMBER = X[:, 0] * Z[:, 0] + 7
TARGETS = {
    "text": np.where(NUMBER > 7, "über", "unter"),
    "three whole numbers": (np.arange(60) % 3) * 10 - 10,
    "Booleans": NUMBER > 7,
    "objects": np.where(NUMBER > 7, "hot", "cold").astype(object),
    "a number": NUMBER,
    "two numbers": np.column_stack([NUMBER, -NUMBER]),
}


@cache
def fit(method, target="text"):
    kind = FieldRegressor if "number" in target and "whole" not in target else FieldClassifier
    return kind(method, options=QUICK[method], random_state=0).fit(X, TARGETS[target], z=Z, domain=DOMAIN)


def same_answers(a, b):
    assert type(a) is type(b)
    elsewhere = np.linspace(-0.5, 1.5, 120).reshape(60, 2)
    for z in (Z, elsewhere, Z[0]):
        answer = b.predict(X, z=z)
        assert_array_equal(a.predict(X, z=z), answer)
        assert a.predict(X, z=z).dtype == answer.dtype
        if isinstance(a, FieldClassifier):
            assert_array_equal(a.predict_proba(X, z=z), b.predict_proba(X, z=z))
    assert_array_equal(a.field_(elsewhere), b.field_(elsewhere))
    assert_array_equal(a.trust(elsewhere), b.trust(elsewhere))
    assert a.relevance_ == b.relevance_


def test_no_kind_of_field_is_forgotten():
    assert {fit(method).model_.field.kind for method in QUICK} | TEMPORAL == set(FIELDS)


@pytest.mark.parametrize("target", ["text", "a number", "two numbers"])
@pytest.mark.parametrize("method", sorted(QUICK))
def test_every_kind_of_field_comes_back_bit_for_bit(method, target, tmp_path):
    estimator = fit(method, target)
    estimator.save(tmp_path / "field")
    same_answers(estimator, load_field(tmp_path / "field"))


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_every_kind_of_target_comes_back(target, tmp_path):
    estimator = fit("erm-d", target)
    estimator.save(str(tmp_path / "field"))
    loaded = load_field(str(tmp_path / "field"))
    same_answers(estimator, loaded)
    if isinstance(estimator, FieldClassifier):
        assert_array_equal(loaded.classes_, estimator.classes_)
        assert loaded.classes_.dtype == estimator.classes_.dtype


@pytest.mark.parametrize(("estimator", "y"), [(FieldClassifier, "text"), (FieldRegressor, "a number")])
def test_a_field_without_descriptors_comes_back(estimator, y, tmp_path):
    plain = estimator("erm", options={"steps": 5}, random_state=0).fit(X, TARGETS[y])
    plain.save(tmp_path / "field")
    assert_array_equal(load_field(tmp_path / "field").predict(X), plain.predict(X))


def test_the_loaded_estimator_knows_how_it_was_made(tmp_path):
    table, names = pd.DataFrame(X, columns=list("abc")), pd.DataFrame(Z, columns=["lat", "lon"])
    options = {"steps": 9, "hidden": (8, 4)}
    estimator = FieldRegressor(
        "erm-d", options=options, predictor_options={"hidden": (6,)}, loss="absolute_error", random_state=3
    ).fit(table, NUMBER, z=names)
    estimator.save(tmp_path / "field")
    loaded = load_field(tmp_path / "field", device="cpu")
    assert loaded.method == "erm-d"
    assert loaded.loss == "absolute_error"
    assert loaded.options["steps"] == 9
    assert loaded.options["hidden"] == (8, 4)
    assert loaded.predictor_options == {"hidden": (6,)}
    assert loaded.n_features_in_ == 3
    assert loaded.model_.recipe == estimator.model_.recipe
    assert list(loaded.relevance_) == ["lat", "lon"]
    # Arrays are taken as they are, and tables by the names of their columns.
    for given in (X, table):
        assert_array_equal(loaded.predict(given, z=Z), estimator.predict(table, z=names))
    with pytest.raises(DataError, match="X has columns c, b, a, but a, b, c were expected"):
        loaded.predict(table[["c", "b", "a"]], z=names)
    # It can be fitted anew with what it was fitted with.
    again = loaded.set_params(random_state=3).fit(table, NUMBER, z=names)
    assert_array_equal(again.predict(table, z=names), estimator.predict(table, z=names))


def test_a_loaded_field_can_be_saved_again(tmp_path):
    fit("neurallio").save(tmp_path / "one")
    load_field(tmp_path / "one").save(tmp_path / "two")
    for name in (storage.DESCRIPTION, storage.TENSORS):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_saved_field_is_json_and_safetensors_only(saved):
    assert sorted(path.name for path in saved.iterdir()) == ["field.json", "field.safetensors"]
    description = json.loads((saved / "field.json").read_text())
    assert description["thetafield"] == __version__
    assert description["recipe"]["method"] == "erm-d"
    header = (saved / "field.safetensors").read_bytes()[8:200]
    assert header.lstrip().startswith(b"{")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("fields") / "field"
    fit("erm-d").save(path)
    return path


@pytest.fixture
def saved(original, tmp_path):
    return shutil.copytree(original, tmp_path / "field")


def describe(path, change):
    """Rewrite the description of a saved field."""
    file = path / "field.json"
    description = json.loads(file.read_text())
    change(description)
    file.write_text(json.dumps(description))


def flip(path, position):
    """Change one bit of the tensors."""
    content = bytearray((path / "field.safetensors").read_bytes())
    content[position] ^= 1
    (path / "field.safetensors").write_bytes(content)


def truncate(path, name, length):
    (path / name).write_bytes((path / name).read_bytes()[:length])


def resign(description, path):
    """Make the checksum fit an altered description, as one who edits by hand might."""
    description["checksum"] = storage._checksum(description, (path / "field.safetensors").read_bytes())


DAMAGES = {
    "tensors cut short": (lambda p: truncate(p, "field.safetensors", -100), "was altered or truncated"),
    "tensors empty": (lambda p: truncate(p, "field.safetensors", 0), "was altered or truncated"),
    "one bit of a tensor": (lambda p: flip(p, -1), "was altered or truncated"),
    "one bit of the header": (lambda p: flip(p, 20), "was altered or truncated"),
    "one bit of the length": (lambda p: flip(p, 0), "was altered or truncated"),
    "another value": (lambda p: describe(p, lambda d: d.update(reach=0.5)), "was altered or truncated"),
    "another option": (lambda p: describe(p, lambda d: d["recipe"]["options"].update(steps=21)), "was altered"),
    "other labels": (lambda p: describe(p, lambda d: d["classes"]["values"].reverse()), "was altered or truncated"),
    "no checksum": (lambda p: describe(p, lambda d: d.pop("checksum")), "was altered or truncated"),
    "newer format": (
        lambda p: describe(p, lambda d: d.update(format=FORMAT + 1)),
        f"has format {FORMAT + 1}, but thetafield {__version__} reads format {FORMAT}: update thetafield",
    ),
    "no format": (lambda p: describe(p, lambda d: d.pop("format")), "is damaged: it is not the JSON"),
    "JSON cut short": (lambda p: truncate(p, "field.json", 100), "is damaged: it is not the JSON"),
    "JSON empty": (lambda p: truncate(p, "field.json", 0), "is damaged: it is not the JSON"),
    "not JSON": (lambda p: (p / "field.json").write_text("format: 1"), "is damaged: it is not the JSON"),
    "not an object": (lambda p: (p / "field.json").write_text("[1]"), "is damaged: it is not the JSON"),
    "not text": (lambda p: (p / "field.json").write_bytes(b"\xff\xfe\x00"), "is damaged: it is not the JSON"),
    "no tensors": (lambda p: (p / "field.safetensors").unlink(), "is not a saved field: it has no field.safetensors"),
    "no JSON": (lambda p: (p / "field.json").unlink(), "is not a saved field: it has no field.json"),
    "no folder": (shutil.rmtree, "There is no folder"),
    "a field of another world": (
        lambda p: describe(p, lambda d: (d["field"].update(kind="flow"), resign(d, p))),
        "cannot build: save it again with this version",
    ),
    "a predictor of another world": (
        lambda p: describe(p, lambda d: (d["recipe"].update(predictor="oracle"), resign(d, p))),
        "cannot build: save it again with this version",
    ),
    "a recipe with more to it": (
        lambda p: describe(p, lambda d: (d["recipe"].update(spice=1), resign(d, p))),
        "cannot build: save it again with this version",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_refused_in_one_sentence_with_the_path(damage, saved):
    harm, message = DAMAGES[damage]
    harm(saved)
    with pytest.raises(FormatError) as caught:
        load_field(saved)
    sentence = str(caught.value)
    assert message in sentence
    assert str(saved) in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_saving_over_a_field_replaces_it_whole(saved, tmp_path):
    (saved / "leftover.txt").write_text("from before")
    estimator = fit("nda", "two numbers")
    estimator.save(saved)
    assert sorted(path.name for path in saved.iterdir()) == ["field.json", "field.safetensors"]
    same_answers(estimator, load_field(saved))
    assert [path.name for path in tmp_path.iterdir()] == ["field"]


def test_folders_on_the_way_are_made_and_an_empty_one_is_used(tmp_path):
    estimator = fit("erm")
    estimator.save(tmp_path / "a" / "b" / "field")
    (tmp_path / "empty").mkdir()
    estimator.save(tmp_path / "empty")
    same_answers(load_field(tmp_path / "empty"), load_field(tmp_path / "a" / "b" / "field"))


def test_what_is_no_field_is_never_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    (tmp_path / "file").write_text("years of work")
    estimator = fit("erm")
    for path in (tmp_path / "thesis", tmp_path / "file"):
        with pytest.raises(FormatError, match="exists and is not a saved field, so it is not replaced"):
            estimator.save(path)
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "years of work"
    assert (tmp_path / "file").read_text() == "years of work"


@pytest.mark.parametrize("existing", [True, False])
def test_a_failure_while_saving_leaves_what_was_there(existing, saved, tmp_path, monkeypatch):
    before = {path.name: path.read_bytes() for path in saved.iterdir()}
    target = saved if existing else tmp_path / "other"
    estimator = fit("nda")

    def full_disk(path, content):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("pathlib.Path.write_bytes", full_disk)
        with pytest.raises(OSError, match="No space left"):
            estimator.save(target)
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["field"]
    estimator.save(target)
    same_answers(estimator, load_field(target))


def test_labels_that_json_cannot_hold_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    estimator = fit("erm")
    monkeypatch.setattr(estimator.model_, "classes", np.array([b"cold", b"warm"]))
    with pytest.raises(FormatError, match="Only text, number and Boolean labels can be saved"):
        estimator.save(tmp_path / "field")
    assert not list(tmp_path.iterdir())


def test_every_kind_of_field_is_known_where_fields_are_read():
    """A field must load in a program that has imported nothing else."""
    program = (
        "import importlib, pkgutil, thetafield.fields.storage, thetafield.fields as fields\n"
        "from thetafield.fields.base import FIELDS\n"
        "known = set(FIELDS)\n"
        "[importlib.import_module(f'thetafield.fields.{m.name}') for m in pkgutil.iter_modules(fields.__path__)]\n"
        "assert set(FIELDS) == known, set(FIELDS) - known"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
