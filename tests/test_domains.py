"""DomainSet: flat storage against plain loops."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from thetafield import DomainSet
from thetafield.data.thinning import thinned
from thetafield.errors import DataError

SIZES = st.lists(st.integers(1, 7), min_size=1, max_size=6)


def rows_of(domains, i):
    """Domain i by the definition: rows offsets[i] to offsets[i + 1]."""
    start, end = int(domains.offsets[i]), int(domains.offsets[i + 1])
    return domains.x[start:end], domains.y[start:end]


def ragged(sizes, classification=True, width=2, dtype=torch.float64):
    """Domains of the given sizes in which every sample and every descriptor is unique."""
    total = sum(sizes)
    x = np.arange(3.0 * total).reshape(total, 3)
    y = np.arange(total) % 2 if classification else np.arange(2.0 * total).reshape(total, 2)
    y = np.array(["no", "yes"])[y] if classification and total > 1 else y
    z = np.arange(float(width * len(sizes))).reshape(len(sizes), width) ** 2
    classification = classification and total > 1
    return DomainSet.from_arrays(
        x, y, domain=np.repeat(np.arange(len(sizes)), sizes), z=z, classification=classification, dtype=dtype
    )


def same(a, b):
    assert_array_equal(a.ids, b.ids)
    assert a.descriptors == b.descriptors
    for name in ("x", "y", "z", "offsets"):
        assert torch.equal(getattr(a, name), getattr(b, name)), name


@given(SIZES, st.booleans(), st.data())
def test_select_equals_a_loop(sizes, classification, data):
    domains = ragged(sizes, classification)
    index = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=8))
    picked = domains.select(index)
    assert picked.ids.tolist() == [domains.ids[i] for i in index]
    assert picked.sizes.tolist() == [sizes[i] for i in index]
    for position, i in enumerate(index):
        for got, expected in zip(rows_of(picked, position), rows_of(domains, i), strict=True):
            assert torch.equal(got, expected)
        assert torch.equal(picked.z[position], domains.z[i])


@given(SIZES, st.data())
def test_select_takes_a_mask_and_negative_positions(sizes, data):
    domains = ragged(sizes)
    mask = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)).filter(any))
    same(domains.select(mask), domains.select(np.flatnonzero(mask)))
    same(domains.select(torch.tensor(mask)), domains.select(np.flatnonzero(mask)))
    same(domains.select([-1]), domains.select([len(sizes) - 1]))


@pytest.mark.parametrize("index", [[], np.zeros(2, bool), 0, [[0, 1]]])
def test_select_needs_a_list_of_domains(index):
    with pytest.raises(DataError, match="at least one domain"):
        ragged([2, 3]).select(index)


@given(SIZES, st.booleans(), st.data())
def test_padded_equals_a_loop(sizes, classification, data):
    domains = ragged(sizes, classification)
    index = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=8))
    batch = domains.padded(torch.tensor(index))
    assert batch.x.shape == (len(index), max(sizes), 3)
    assert batch.weight.sum(1).numpy() == pytest.approx(1)
    assert batch.index.tolist() == index
    for position, i in enumerate(index):
        x, y = rows_of(domains, i)
        assert torch.equal(batch.x[position, : sizes[i]], x)
        assert torch.equal(batch.y[position, : sizes[i]], y)
        assert batch.weight[position, : sizes[i]].numpy() == pytest.approx(1 / sizes[i])
        assert (batch.weight[position, sizes[i] :] == 0).all()
        assert torch.isfinite(batch.x[position]).all()


@given(SIZES, st.integers(1, 9), st.integers(0, 10), st.data())
def test_draw_stays_in_its_domain_and_follows_the_seed(sizes, num_samples, seed, data):
    domains = ragged(sizes)
    index = torch.tensor(data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=8)))
    batch = domains.draw(index, num_samples, torch.Generator().manual_seed(seed))
    again = domains.draw(index, num_samples, torch.Generator().manual_seed(seed))
    assert batch.x.shape == (len(index), num_samples, 3)
    assert torch.equal(batch.x, again.x)
    assert torch.equal(batch.y, again.y)
    assert batch.weight.sum(1).numpy() == pytest.approx(1)
    for position, i in enumerate(index.tolist()):
        x, y = rows_of(domains, i)
        samples = {tuple(row.tolist()): label.tolist() for row, label in zip(x, y, strict=True)}
        for row, label in zip(batch.x[position], batch.y[position], strict=True):
            assert samples[tuple(row.tolist())] == label.tolist()


def test_draw_is_uniform_over_the_samples(generator):
    sizes, count = [1, 3, 7], 21_000
    domains = ragged(sizes)
    batch = domains.draw(torch.arange(3), count, generator)
    for position, size in enumerate(sizes):
        seen = torch.bincount((batch.x[position, :, 0] / 3).long() - sum(sizes[:position]), minlength=size)
        expected = count / size
        # Pearson's statistic has size − 1 degrees of freedom: 30 is far in its tail.
        assert ((seen - expected) ** 2 / expected).sum() < 30
    assert not torch.equal(batch.x, domains.draw(torch.arange(3), count, generator).x)


def test_draw_never_rounds_past_the_last_sample(monkeypatch):
    almost_one = torch.tensor(1.0).nextafter(torch.tensor(0.0))
    monkeypatch.setattr(torch, "rand", lambda shape, **_: almost_one.expand(shape).clone())
    domains = ragged([2**10, 3])
    last = domains.draw(torch.arange(2), 4, torch.Generator()).x
    assert torch.equal(last[0, 0], rows_of(domains, 0)[0][-1])
    assert torch.equal(last[1, 0], rows_of(domains, 1)[0][-1])


KEYS = st.lists(st.sampled_from(["b", "a", "Ä", "", "aa"]), min_size=2, max_size=25)


@given(KEYS)
def test_from_arrays_groups_like_a_loop_over_unique(keys):
    keys = np.array(keys)
    x, y = np.arange(2.0 * len(keys)).reshape(-1, 2), np.arange(len(keys)) / 2
    z = np.array([[len(key), ord(key[:1] or " ")] for key in keys], dtype=float)
    domains = DomainSet.from_arrays(x, y, domain=keys, z=z, dtype=torch.float64)
    assert domains.ids.tolist() == np.unique(keys).tolist()
    for i, key in enumerate(np.unique(keys)):
        got_x, got_y = rows_of(domains, i)
        assert_array_equal(got_x.numpy(), x[keys == key])
        assert_array_equal(got_y[:, 0].numpy(), y[keys == key])
        assert_array_equal(domains.z[i].numpy(), z[keys == key][0])


@given(KEYS, st.randoms(use_true_random=False))
def test_permuting_rows_keeps_every_domain(keys, random):
    keys = np.array(keys)
    order = np.arange(len(keys))
    random.shuffle(order)
    x, y = np.arange(2.0 * len(keys)).reshape(-1, 2), np.arange(len(keys)) / 2
    before = DomainSet.from_arrays(x, y, domain=keys)
    after = DomainSet.from_arrays(x[order], y[order], domain=keys[order])
    assert_array_equal(before.ids, after.ids)
    assert torch.equal(before.sizes, after.sizes)
    for i in range(len(before)):
        rows = [sorted(map(tuple, torch.cat(rows_of(d, i), 1).tolist())) for d in (before, after)]
        assert rows[0] == rows[1]


@given(SIZES, st.randoms(use_true_random=False))
def test_descriptors_per_row_and_per_domain_agree(sizes, random):
    sizes = [2, *sizes]  # with one row in every domain, z would be read as per row
    domain = np.repeat(np.arange(len(sizes)) * 7 - 3, sizes)
    random.shuffle(domain)
    x, y = np.arange(len(domain), dtype=float), np.arange(len(domain)) / 2
    ids, codes = np.unique(domain, return_inverse=True)
    z = np.arange(2.0 * len(ids)).reshape(-1, 2) ** 2
    per_domain = DomainSet.from_arrays(x, y, domain=domain, z=z)
    same(per_domain, DomainSet.from_arrays(x, y, domain=domain, z=z[codes]))
    assert_array_equal(per_domain.z.numpy(), z)


@given(st.lists(SIZES, min_size=1, max_size=4), st.booleans())
def test_concatenate_gives_the_parts_back(many_sizes, classification):
    many_sizes = [[2, *sizes] for sizes in many_sizes]
    parts = [ragged(sizes, classification) for sizes in many_sizes]
    whole = DomainSet.concatenate(parts)
    assert len(whole) == sum(map(len, parts))
    ends = np.cumsum([len(part) for part in parts])
    for part, end in zip(parts, ends, strict=True):
        same(whole.select(np.arange(end - len(part), end)), part)


def test_concatenate_refuses_other_classes_and_descriptors():
    one = DomainSet.from_arrays([[0.0], [1.0]], ["a", "b"], z=[0, 1])
    other = DomainSet.from_arrays([[0.0], [1.0]], ["a", "c"], z=[0, 1])
    named = DomainSet.from_arrays([[0.0], [1.0]], ["a", "b"], z=[0, 1], descriptors=["time"])
    for part in (other, named):
        with pytest.raises(DataError, match="differ in descriptors or classes"):
            DomainSet.concatenate([one, part])


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (np.array(["b", "a", "b"], dtype=object), ["a", "b"]),
        (np.array([2**62 + 1, 2**62, 2**62 + 1]), [2**62, 2**62 + 1]),
        (np.array([2**63 + 1, 2**63, 2**63 + 1], dtype=np.uint64), [2**63, 2**63 + 1]),
        (torch.tensor([5, -1, 5]), [-1, 5]),
        ([True, False, True], [False, True]),
        (["x", "", "x"], ["", "x"]),
        (pd.Series(["b", "a", "b"], dtype="string"), ["a", "b"]),
        (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
        (pd.Series([4, 3, 4], dtype="Int64"), [3, 4]),
        (pa.chunked_array([["b", "a"], ["b"]]), ["a", "b"]),
        (np.array([[2], [1], [2]]), [1, 2]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_domain_ids_of_many_types(given, ids):
    domains = DomainSet.from_arrays([[0.0], [1.0], [2.0]], [0.5, 1.5, 2.5], domain=given)
    assert domains.ids.tolist() == ids
    assert domains.x[:, 0].tolist() == [1, 0, 2]
    assert domains.offsets.tolist() == [0, 1, 3]


def test_dates_can_name_domains():
    dates = np.array(["2021-01-01", "2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    domains = DomainSet.from_arrays([[0.0], [1.0], [2.0]], [0.5, 1.5, 2.5], domain=dates)
    assert domains.ids.astype(str).tolist() == ["2020-01-01", "2021-01-01"]


def test_without_domain_rows_with_equal_z_are_one_domain():
    z = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, -0.0], [0.0, 1.0]])
    domains = DomainSet.from_arrays(np.arange(4.0), [0.5, 1, 2, 3], z=z)
    assert domains.z.tolist() == [[0, 1], [0, 2], [1, 0]]
    assert domains.x[:, 0].tolist() == [3, 1, 0, 2]
    assert domains.offsets.tolist() == [0, 1, 2, 4]


def test_without_z_and_domain_all_rows_are_one_domain():
    domains = DomainSet.from_arrays(np.arange(4.0), [0.5, 1, 2, 3])
    assert len(domains) == 1
    assert domains.z.shape == (1, 0)
    assert domains.descriptors == ()


def test_dtype_holds_for_inputs_targets_and_descriptors():
    value = 1 + 2**-40
    domains = DomainSet.from_arrays([[value], [2.0]], [value, 0], z=[[value], [0]], dtype=torch.float64)
    assert [t.dtype for t in (domains.x, domains.y, domains.z)] == [torch.float64] * 3
    assert domains.x[1, 0] == value == domains.z[1, 0]
    assert domains.draw(torch.arange(2), 3, torch.Generator()).weight.dtype == torch.float64
    assert domains.padded(torch.arange(2)).weight.dtype == torch.float64
    default = DomainSet.from_arrays([[value], [2.0]], [value, 0.5], z=[[value], [0]])
    assert [t.dtype for t in (default.x, default.y, default.z)] == [torch.float32] * 3


def test_to_changes_the_type_of_numbers_and_never_of_classes():
    classes, numbers = ragged([2, 3]), ragged([2, 3], classification=False)
    moved = classes.to("cpu", torch.float32)
    assert moved.x.dtype == moved.z.dtype == torch.float32
    assert moved.y.dtype == torch.int64
    assert numbers.to(dtype=torch.float32).y.dtype == torch.float32
    same(moved.to(dtype=torch.float64), classes)
    assert moved.to(torch.device("meta")).offsets.device.type == "meta"


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", "b"], ["a", "b"]),
        ([True, False, True], [False, True]),
        ([7, 3, 7], [3, 7]),
        (np.array([[7], [3], [7]]), [3, 7]),
        (np.array([7, 3, 7], dtype=object), [3, 7]),
        (pd.Series([7, 3, 7], dtype="Int64"), [3, 7]),
        (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
        ([1.0, 0.0, 1.0], None),
        (np.array([1.5, 0.0, 1.0], dtype=object), None),
        (pd.Series([1.5, 0.0, 1.0], dtype="Float64"), None),
        (np.zeros((3, 2), dtype=int), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_counts_as_a_class(y, classes):
    domains = DomainSet.from_arrays([[0.0], [1.0], [2.0]], y)
    assert domains.classification == (classes is not None)
    if classes is not None:
        assert domains.classes.tolist() == classes
        assert domains.y.tolist() == [1, 0, 1]


def test_many_whole_numbers_are_numbers_unless_said_otherwise():
    x, y = np.arange(21.0), np.arange(21)
    assert not DomainSet.from_arrays(x, y).classification
    assert DomainSet.from_arrays(x, y, classification=True).num_outputs == 21
    assert DomainSet.from_arrays(x, y % 20).classification
    assert not DomainSet.from_arrays(x, y % 20, classification=False).classification
    assert DomainSet.from_arrays(x, y / 2 % 3, classification=True).classes.dtype.kind == "f"


def test_names_come_from_tables():
    z = pd.DataFrame({"lat": [0.0, 1.0], "lon": [2.0, 3.0]})
    X = pd.DataFrame({"a": [0.0, 1.0], 7: [2.0, 3.0]})
    domains = DomainSet.from_arrays(X, [0.5, 1], z=z)
    assert (domains.descriptors, domains.factors, domains.features) == (("lat", "lon"), ("lat", "lon"), ("a", "7"))
    same(DomainSet.from_arrays(X, [0.5, 1], z=pa.Table.from_pandas(z)), domains)


def test_inputs_keep_their_shape():
    images = np.random.default_rng(0).normal(size=(4, 3, 5, 5))
    domains = DomainSet.from_arrays(images, [0, 1, 0, 1], domain=[0, 0, 1, 1])
    assert domains.x.shape == (4, 3, 5, 5)
    assert domains.padded(torch.arange(2)).x.shape == (2, 2, 3, 5, 5)
    assert repr(domains) == "DomainSet(2 domains, 4 samples, x (3, 5, 5), 2 classes, z: none)"


@pytest.mark.parametrize("every", [1, 2, 3, 100])
def test_one_in_so_many_samples_of_each_domain_is_drawn_at_random(every):
    sizes = [1, 7, 20, 3]
    domain = np.repeat(np.arange(4), sizes)
    whole = DomainSet.from_arrays(np.arange(31.0)[:, None], domain % 2, domain=domain, z=np.arange(4.0)[domain, None])
    some = [thinned(whole, every, 1, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert thinned(whole, every, 5, torch.Generator()).sizes.tolist() == [
        max(-(-size // every), min(size, 5)) for size in sizes
    ]
    assert some[0].sizes.tolist() == [-(-size // every) for size in sizes]
    assert torch.equal(some[0].x, some[1].x) and torch.equal(some[0].z, whole.z)
    for number in range(4):
        own = set(whole.select([number]).x.flatten().tolist())
        drawn = some[0].select([number]).x.flatten().tolist()
        assert set(drawn) <= own and len(set(drawn)) == len(drawn) and drawn == sorted(drawn)
    if every in (2, 3):
        assert not torch.equal(some[0].x, some[2].x) and len(set(some[0].x.flatten().diff().tolist())) > 1


def test_with_descriptors_checks_the_shape():
    domains = ragged([2, 3])
    other = domains.with_descriptors(torch.tensor([[0], [1]]), ["time"])
    assert (other.descriptors, other.factors, other.z.dtype) == (("time",), ("time",), torch.float64)
    with pytest.raises(DataError, match=r"Expected descriptors of shape \(2, 1\), but got \(3, 1\)"):
        domains.with_descriptors(torch.zeros(3, 1), ["time"])
