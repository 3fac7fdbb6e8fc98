"""Datasets of the paper: miniature archives in the published formats through the real path, and MNIST where it is."""

import collections
import enum
import gzip
import json
import os
import pickle
import sys
import types

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from safetensors.torch import save_file

from thetafield.datasets import DATASETS
from thetafield.datasets.groups import largest_groups
from thetafield.datasets.mnist import SOURCE as MNIST
from thetafield.datasets.mnist import read_idx, transformed
from thetafield.datasets.pickles import read_plain_pickle
from thetafield.datasets.root import AbsentError
from thetafield.datasets.source import source_of, state_of
from thetafield.datasets.yearbook import PORTRAITS, TIMES
from thetafield.errors import DataError, NeedError, OptionError
from thetafield.predictors.resnet import ResNet50
from thetafield.testing import check_dataset

YEARS = [1930 + time for time in TIMES]
STATISTICS = [
    *("sjr_n_sources", "sjr_docs_2024", "sjr_docs_3y", "sjr_cites_3y", "sjr_refs", "sjr_h_max", "sjr_h_mean"),
    *("sjr_sjr_wmean", "sjr_cites_per_doc", "sjr_refs_per_doc", "sjr_pct_female", "sjr_oa_share", "sjr_q1_share"),
]


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("THETAFIELD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("THETAFIELD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "data"


@pytest.fixture
def stream():
    return np.random.default_rng(0)


def placed(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write_lines(path, lines):
    placed(path).write_text("\n".join(lines) + "\n")
    return path


def write_image(path, pixels):
    pillow = pytest.importorskip("PIL.Image")
    pillow.fromarray(pixels).save(placed(path))


def one_sentence(caught, *words):
    message = str(caught.value)
    assert "\n" not in message and all(str(word) in message for word in words), message


# --- what all of them share


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("mnist", "mnist/train-images-idx3-ubyte.gz"),
        ("yearbook", "yearbook/yearbook.pkl"),
        ("fmow", "fmow/rgb_metadata.csv"),
        ("arxiv", "arxiv/arxiv-metadata-oai-snapshot.json"),
        ("traffic", "traffic/flow.npy"),
    ],
)
def test_missing_files_say_what_to_get(root, name, first):
    with pytest.raises(AbsentError) as caught:
        DATASETS[name](0)
    one_sentence(caught, name, root / first, "THETAFIELD_DATA")
    source = source_of(DATASETS[name])
    assert state_of(DATASETS[name]).word == "absent" and source.licence and (source.note or name == "mnist")


def test_the_largest_groups_are_taken_up_to_a_cap(tmp_path):
    groups = np.array(list("cabbcbdccbabc"))
    rows = largest_groups(groups, 2, 3, "toy", tmp_path)
    assert "".join(groups[rows]) == "bbbccc" and len(set(rows.tolist())) == 6
    assert np.array_equal(rows, largest_groups(groups, 2, 3, "toy", tmp_path))
    assert "".join(groups[largest_groups(groups, 3, 99, "toy", tmp_path)]) == "aabbbbbccccc"[:2] + "bbbbb" + "ccccc"
    with pytest.raises(DataError, match="toy needs 5 domains"):
        largest_groups(groups, 5, 3, "toy", tmp_path)


# --- MNIST


def slow_digit(digit, z):
    """One digit, pixel by pixel: where it came from under a turn to the left, four neighbours, colour, square."""
    angle, blue, half = np.deg2rad(18 * z[0]), z[1] / 50, int(z[2]) // 2
    image = np.zeros((3, 28, 28))
    for row in range(28):
        for column in range(28):
            right, up = column - 13.5, 13.5 - row
            column_from = np.cos(angle) * right + np.sin(angle) * up + 13.5
            row_from = 13.5 - (np.cos(angle) * up - np.sin(angle) * right)
            grey = 0.0
            for i in (int(np.floor(row_from)), int(np.floor(row_from)) + 1):
                for j in (int(np.floor(column_from)), int(np.floor(column_from)) + 1):
                    if 0 <= i < 28 and 0 <= j < 28:
                        grey += digit[i, j] * (1 - abs(row_from - i)) * (1 - abs(column_from - j))
            image[:, row, column] = grey * (1 - blue), 0, grey * blue
            if 14 - half <= row < 14 + half and 14 - half <= column < 14 + half:
                image[:, row, column] = 255
    return image


def test_digits_are_turned_coloured_and_covered(stream):
    digits = stream.integers(0, 256, (3, 2, 28, 28), dtype=np.uint8)
    z = np.array([[0.0, 0.0, 5.0], [3.3, 20.0, 9.99], [47.1, 50.0, 15.0]], dtype=np.float32)
    images = transformed(torch.from_numpy(digits), torch.from_numpy(z))
    assert images.shape == (3, 2, 3, 28, 28) and images.dtype == torch.uint8
    for domain in range(3):
        for digit in range(2):
            expected = slow_digit(digits[domain, digit], z[domain].astype(float))
            assert_allclose(images[domain, digit].numpy(), expected, atol=0.51)  # half a level is lost to rounding


def test_a_unit_of_rotation_is_18_degrees_to_the_left(stream):
    digits = stream.integers(0, 256, (1, 1, 28, 28), dtype=np.uint8)
    for units, quarters in ((0, 0), (5, 1), (10, 2), (35, 7)):
        z = torch.tensor([[float(units), 0.0, 5.0]])
        red = transformed(torch.from_numpy(digits), z)[0, 0, 0].numpy()
        expected = np.rot90(digits[0, 0], quarters).copy()
        expected[12:16, 12:16] = 255
        assert np.abs(red.astype(int) - expected).max() <= 1, units


def test_the_side_of_the_square_is_even(stream):
    sides = []
    for occlusion in (5.0, 5.9, 6.0, 7.9, 8.0, 14.2, 15.0):
        image = transformed(torch.zeros(1, 1, 28, 28, dtype=torch.uint8), torch.tensor([[9.0, 9.0, occlusion]]))[0, 0]
        white = image.eq(255).all(0)
        assert torch.equal(white.sum(0), white.flip(1).sum(0)) and torch.equal(white, white.T)
        sides.append(int(white.any(0).sum()))
    assert sides == [4, 4, 6, 6, 8, 14, 14]


def write_idx(path, values):
    header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, dtype=">u4").tobytes()
    path.write_bytes(gzip.compress(header + values.tobytes()))
    return path


def test_idx_files(tmp_path, stream):
    values = stream.integers(0, 256, (5, 4, 3), dtype=np.uint8)
    path = write_idx(tmp_path / "some.gz", values)
    assert np.array_equal(read_idx(path, 3), values)
    whole = path.read_bytes()
    plain = gzip.decompress(whole)
    for content in (
        whole[:-9],
        whole[: len(whole) // 2],
        whole[:12] + bytes([whole[12] ^ 255]) + whole[13:],
        b"",
        b"no gzip",
        plain,
        gzip.compress(plain[:-1]),
        gzip.compress(plain[:7]),
        gzip.compress(b"\0\0\x0b\x03" + plain[4:]),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError) as caught:
            read_idx(path, 3)
        one_sentence(caught, path, "is damaged", "thetafield data fetch mnist")
    with pytest.raises(DataError, match="no idx file of bytes with that many axes"):
        read_idx(write_idx(path, values), 1)


def test_mnist_of_a_wrong_size_is_named(root):
    for file in MNIST.files:
        placed(root / file.path).write_bytes(b"short")
    with pytest.raises(DataError) as caught:
        DATASETS["mnist"](0)
    one_sentence(caught, "5 bytes", "9,912,422 were published")
    assert state_of(DATASETS["mnist"]).word == "damaged"
    assert all(len(file.urls) == 2 and all(url.endswith(file.place.name) for url in file.urls) for file in MNIST.files)


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """The published MNIST, with a cache of its own."""
    monkeypatch.setenv("THETAFIELD_CACHE", str(tmp_path / "cache"))
    state = state_of(DATASETS["mnist"])
    if state.word == "absent":
        pytest.skip(state.detail)
    assert state.word == "present", state.detail  # with the published checksums
    return tmp_path / "cache"


def test_the_published_mnist(digits):
    data = DATASETS["mnist"](3, num_train=6, num_test=2)
    train, test = data.train, data.test["random"]
    assert data.predictor == "convnet" and not data.ordered
    assert train.x.shape == (6000, 3, 28, 28) and train.x.dtype == torch.uint8 and len(test.x) == 2000
    assert train.descriptors == ("rotation", "colour", "occlusion")
    assert train.ids.tolist() == list(range(6)) and test.ids.tolist() == [6, 7]
    z = torch.cat([train.z, test.z])
    assert (z >= torch.tensor([0.0, 0, 5])).all() and (z <= torch.tensor([50.0, 50, 15])).all()
    # Any stored image is the transform of a digit of the original set with the same label.
    originals, labels = (read_idx(path, axes) for path, axes in zip(MNIST.paths(), (3, 1), strict=True))
    for row in (0, 2500, 5999):
        alike = torch.from_numpy(originals[labels == int(train.y[row])])[None]
        images = transformed(alike, train.z[[row // 1000]])[0]
        assert (images == train.x[row]).flatten(1).all(1).any()
    counts = torch.bincount(train.y, minlength=10)
    assert len(counts) == 10 and counts.min() > 400


def test_mnist_groups_have_streams_of_their_own(digits):
    small = DATASETS["mnist"](0, num_train=2, num_test=1)
    assert len(list(digits.iterdir())) == 2
    again = DATASETS["mnist"](0, num_train=2, num_test=3)
    assert torch.equal(small.train.x, again.train.x) and torch.equal(small.train.y, again.train.y)
    assert torch.equal(small.test["random"].x, again.test["random"].x[:1000])
    assert len(list(digits.iterdir())) == 3  # the training domains were read again
    other = DATASETS["mnist"](1, num_train=2, num_test=1)
    assert not torch.equal(small.train.z, other.train.z) and not torch.equal(small.train.y, other.train.y)
    assert not torch.equal(small.train.z[0], small.test["random"].z[0])


# --- pickles


class Malicious:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


def dumped(path, value, protocol=4):
    placed(path).write_bytes(pickle.dumps(value, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", range(6))
def test_plain_pickles_are_read(tmp_path, protocol):
    value = {
        1930: {0: {"images": np.arange(6.0).reshape(2, 3), "labels": np.array([0, 1])}},
        "rest": [np.float32(2.5), np.int64(3), np.array(["a", "bc"]), np.arange(4, dtype=">i2")[::2], (1, None, True)],
        "plain": collections.OrderedDict(a={1, 2}, b=b"\xff\x00", c=1 + 2j, d=np.asfortranarray(np.eye(3))),
    }
    content = pickle.dumps(value, protocol=protocol)
    # Files of numpy 1 have other names of modules, which early protocols end with a newline: they can be replaced.
    for stored in (content, content.replace(b"numpy._core", b"numpy.core")) if protocol < 4 else (content,):
        path = tmp_path / "plain.pkl"
        path.write_bytes(stored)
        read = read_plain_pickle(path)
        assert list(read) == list(value)
        assert np.array_equal(read[1930][0]["images"], value[1930][0]["images"])
        for found, given in zip(read["rest"], value["rest"], strict=True):
            assert np.array_equal(found, given) and type(found) is type(given)
        assert np.array_equal(read["plain"]["d"], np.eye(3)) and read["plain"]["b"] == b"\xff\x00"
        assert read["plain"]["a"] == {1, 2} and read["plain"]["c"] == 1 + 2j


@pytest.mark.parametrize("protocol", range(6))
def test_a_malicious_pickle_does_not_run(tmp_path, protocol):
    marker = tmp_path / "ran"
    path = dumped(tmp_path / "bad.pkl", {1930: [Malicious(marker)]}, protocol)
    with pytest.raises(DataError) as caught:
        read_plain_pickle(path)
    one_sentence(caught, path, f"{os.system.__module__}.system", "refused")
    assert not marker.exists()
    pickle.loads(path.read_bytes())  # so that the test shows something
    assert marker.exists()


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (collections.Counter("ab"), "collections.Counter"),
        (np.random.default_rng, "default_rng"),
        (getattr, "builtins.getattr"),
        (eval, "builtins.eval"),
        (torch.Tensor, "torch.Tensor"),
        (np.array([None, {}], dtype=object), "arrays of object are not plain"),
        (np.zeros(2, dtype=[("a", "f4"), ("b", "O")]), "not plain"),
    ],
)
def test_other_pickles_are_refused_by_name(tmp_path, value, named):
    path = dumped(tmp_path / "other.pkl", value)
    with pytest.raises(DataError) as caught:
        read_plain_pickle(path)
    one_sentence(caught, path, named)


@pytest.mark.parametrize("content", [b"", b"text", b"\x80\x04]", b"cos\nsystem\n"])
def test_a_damaged_pickle_is_named(tmp_path, content):
    (tmp_path / "cut.pkl").write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_plain_pickle(tmp_path / "cut.pkl")
    one_sentence(caught, tmp_path / "cut.pkl")


def test_bytes_in_other_encodings_are_refused(tmp_path):
    path = tmp_path / "bytes.pkl"
    path.write_bytes(b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.")
    with pytest.raises(DataError, match="written as rot13"):
        read_plain_pickle(path)


# --- Yearbook


def portraits(stream, per_year=4):
    """Bytes and labels of each year; pixels of one portrait are alike in part, so that they survive a resize."""
    return {
        year: (stream.integers(0, 256, (per_year, 32, 32), dtype=np.uint8), np.arange(per_year) % 2)
        for year in range(1930, 2014)
    }


def wild_time(years, whole=True, modes=(0, 1, 2)):
    """The layout of yearbook.pkl: shares of white in three equal colours, 90 % in part 0, 10 % in 1, all in 2."""
    stored = {}
    for year, (pixels, labels) in years.items():
        images = np.repeat(pixels[..., None], 3, -1) / 255.0
        parts = [slice(0, 3), slice(3, None), slice(None)][: 3 if whole else 2]
        stored[year] = {
            mode: {"images": images[part], "labels": labels[part]} for mode, part in zip(modes, parts, strict=False)
        }
    return stored


def assert_yearbook(data, years):
    past, future = data.train, data.test["future"]
    assert data.ordered and data.predictor == "convnet" and data.predictor_options == {"hidden": (128, 32)}
    assert past.z.ravel().tolist() == list(TIMES[:28]) and future.z.ravel().tolist() == list(TIMES[28:])
    assert [*past.ids, *future.ids] == [str(year) for year in YEARS] and past.ids[0] == "1930"
    assert past.x.dtype == torch.uint8 and past.x.shape[1:] == (1, 32, 32)
    x, y = torch.cat([past.x, future.x])[:, 0].numpy(), torch.cat([past.y, future.y]).numpy()
    assert np.array_equal(x, np.concatenate([years[year][0] for year in YEARS]))
    assert np.array_equal(y, np.concatenate([years[year][1] for year in YEARS]))


@pytest.mark.parametrize("whole", [True, False])
def test_yearbook_from_the_pickle(root, stream, whole):
    years = portraits(stream)
    dumped(root / "yearbook/yearbook.pkl", wild_time(years, whole))
    assert_yearbook(DATASETS["yearbook"](0), years)
    assert state_of(DATASETS["yearbook"]).word == "present"
    check_dataset("yearbook")


def test_yearbook_from_the_early_pickle_with_an_enumeration(root, stream, monkeypatch):
    """The script that made the file had members of data.utils.Mode as keys."""
    module = types.ModuleType("data.utils")
    module.Mode = enum.Enum("Mode", {"TRAIN": 0, "TEST_ID": 1, "TEST_OOD": 2}, module="data.utils")
    # Before Python 3.11 members were pickled by their values.
    module.Mode.__reduce_ex__ = lambda member, protocol: (module.Mode, (member.value,))
    years = portraits(stream)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "data", types.ModuleType("data"))
        patched.setitem(sys.modules, "data.utils", module)
        dumped(root / "yearbook/yearbook.pkl", wild_time(years, modes=list(module.Mode)))
    assert b"data.utils" in (root / "yearbook/yearbook.pkl").read_bytes()
    assert_yearbook(DATASETS["yearbook"](0), years)


def test_yearbook_from_the_original_portraits(root, stream):
    years = portraits(stream)
    folder = root / "yearbook" / PORTRAITS
    for year in [1905, *YEARS]:
        pixels, labels = years.get(year, years[1930])
        for number, (image, label) in enumerate(zip(pixels, labels, strict=True)):
            write_image(folder / "MF"[label] / f"{year}_Ohio_Troy_High_{number}.png", image)
    # Files are in order of their names, men before women.
    order = {year: (pixels[[0, 2, 1, 3]], labels[[0, 2, 1, 3]]) for year, (pixels, labels) in years.items()}
    assert_yearbook(DATASETS["yearbook"](0), order)
    assert state_of(DATASETS["yearbook"]).word == "present"
    write_image(folder / "F" / "1933_Ohio_Troy_High_9.png", np.full((96, 64, 3), 77, dtype=np.uint8))
    larger = DATASETS["yearbook"](0).train  # the cache notices the new file
    assert larger.sizes[1] == 5 and larger.x[int(larger.offsets[2]) - 1].eq(77).all()
    dumped(root / "yearbook/yearbook.pkl", wild_time(years))
    assert_yearbook(DATASETS["yearbook"](0), years)  # the pickle goes first


def test_portraits_need_pillow(root, stream, monkeypatch):
    for sex in "MF":
        for year in YEARS:
            placed(root / "yearbook" / PORTRAITS / sex / f"{year}_a.png").write_bytes(b"no image")
    with pytest.raises(DataError) as caught:
        DATASETS["yearbook"](0)
    one_sentence(caught, "1930_a.png is missing or no image")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(NeedError, match=r"pip install 'thetafield\[vision\]'"):
        DATASETS["yearbook"](0)


def test_yearbooks_without_a_year_or_a_folder_are_named(root, stream):
    folder = root / "yearbook" / PORTRAITS
    write_image(folder / "M" / "1930_a.png", np.zeros((32, 32), np.uint8))
    with pytest.raises(DataError, match="F does not exist: unpack the whole archive"):
        DATASETS["yearbook"](0)
    (folder / "F").mkdir()
    with pytest.raises(DataError, match="holds no portrait of 1933"):
        DATASETS["yearbook"](0)


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda stored: stored.pop(1933), "1933"),
        (lambda stored: stored[1933].clear(), "KeyError"),
        (
            lambda stored: stored[1933].update({2: {"images": np.zeros((2, 32, 32, 3)), "labels": np.zeros(3)}}),
            "3 labels",
        ),
        (lambda stored: stored[1933][2].update(images=stored[1933][2]["images"] * 255), "not in [0, 1]"),
        (lambda stored: stored[1933][2].update(labels=np.array([0, 1, 2, 0])), "not 0 or 1"),
        (lambda stored: stored.update({1933: "text"}), "TypeError"),
    ],
)
def test_another_pickle_than_yearbook_is_named(root, stream, change, finding):
    stored = wild_time(portraits(stream))
    change(stored)
    path = dumped(root / "yearbook/yearbook.pkl", stored)
    with pytest.raises(DataError) as caught:
        DATASETS["yearbook"](0)
    one_sentence(caught, path, "is not Wild-Time's yearbook.pkl", finding)


# --- fMoW

KINDS = [f"kind_{letter}" for letter in "lkjihgfedcba"]  # the last two are rare
COUNTRIES = [f"{first}{second}X" for first in "ABCDEFGHIJ" for second in "ABCDEFGHIJ"][:98]


def write_fmow(root, stream, per_country=11, size=16):
    """Rows of WILDS's rgb_metadata.csv with one image each; the last country is small, one more has no climate."""
    header = (
        "split,img_filename,img_path,spatial_reference,epsg,category,visible,img_width,img_height,country_code,"
        "cloud_cover,timestamp,lat,lon,region"
    )
    rows, pixels = [], {}
    for number in range(per_country):
        for country in [*COUNTRIES, "NOX"]:
            if country == COUNTRIES[-1] and number > 2:
                continue
            kind = KINDS[number % 10] if country != "AAX" or number else KINDS[10]
            pixels[len(rows)] = stream.integers(0, 256, (size, size, 3), dtype=np.uint8)
            place = f"True,9,9,{country},1,2015-01-01T00:00:00Z,1.5,2.5,x"
            rows.append(f'train,a.jpg,b.jpg,"GEOGCS[""WGS 84"",a]",4326,{kind},{place}')
    rows.append(rows[0].replace("train", "seq", 1))  # a sequestered row without an image
    write_lines(root / "fmow/rgb_metadata.csv", [header, *rows])
    for row, image in pixels.items():
        write_image(root / f"fmow/images/rgb_img_{row}.png", image)
    climate = ["ISO3,temp_ann,precip_ann,spec_humidity_ann,precip_iav,temp_DJF,temp_MAM,temp_JJA,temp_SON,ndvi"]
    climate += [f"{c},9,{i},{i / 2},7,{i + 1},{i + 2},{i + 3},{i + 4},0.5" for i, c in enumerate(COUNTRIES)]
    write_lines(root / "country_climate/country_climate.csv", [*climate, "NOX,9,,1,7,1,2,3,4,"])
    torch.manual_seed(0)
    network = ResNet50(width=2).eval()
    save_file(network.state_dict(), root / "fmow/resnet50.safetensors")
    return network, rows, pixels


def test_fmow(root, stream):
    network, rows, pixels = write_fmow(root, stream)
    assert state_of(DATASETS["fmow"]).word == "present"
    data = DATASETS["fmow"](0, per_domain=8)
    train, test = data.train, data.test["countries"]
    assert len(train) == 50 and len(test) == 46 and data.predictor_options == {"hidden": (128, 64)}
    assert train.x.dtype == torch.float16 and train.x.shape[1:] == (64,)
    assert train.classes.tolist() == sorted(KINDS[:10]) and set(train.sizes.tolist()) == {8}
    assert train.descriptors == ("temp_DJF", "temp_MAM", "temp_JJA", "temp_SON", "precip_ann", "spec_humidity_ann")
    assert train.factors == (*["temperature"] * 4, "precipitation", "humidity")
    both = [*train.ids.tolist(), *test.ids.tolist()]
    assert len(set(both)) == 96 and not {"NOX", COUNTRIES[-1], "AAX"} & set(both)  # the smallest are left out
    for part in (train, test):
        i = [COUNTRIES.index(country) for country in part.ids]
        assert part.z[:, 0].tolist() == [n + 1 for n in i] and part.z[:, 5].tolist() == [n / 2 for n in i]
    # Every stored vector is that of an image of its country with its category.
    fields = [row.split(",") for row in rows]
    for domain in (0, 17):
        mine = [r for r in pixels if fields[r][-6] == train.ids[domain]]
        images = torch.from_numpy(np.stack([pixels[r] for r in mine])).permute(0, 3, 1, 2)
        kinds = [train.classes.tolist().index(fields[r][-10]) for r in mine]
        expected = {k: v for k, v in zip(kinds, network(images).detach(), strict=True)}
        begin = int(train.offsets[domain])
        for sample in range(begin, begin + 8):
            vector = expected[int(train.y[sample])] if int(train.y[sample]) != kinds[0] else None
            if vector is not None:
                torch.testing.assert_close(train.x[sample].float(), vector, rtol=2e-3, atol=2e-3)


def test_fmow_is_split_by_an_option_and_not_by_the_seed(root, stream):
    write_fmow(root, stream, per_country=10)
    first, again, other = (
        DATASETS["fmow"](seed, split=split, per_domain=2) for seed, split in ((0, 0), (5, 0), (0, 1))
    )
    assert first.train.ids.tolist() == again.train.ids.tolist() != other.train.ids.tolist()
    assert torch.equal(first.train.x, again.train.x)
    assert len(list((root.parent / "cache").iterdir())) == 1  # features are made once for all splits
    check_dataset("fmow")


def test_damaged_fmow_is_named(root, stream):
    write_fmow(root, stream, per_country=1)
    with pytest.raises(DataError, match="fmow needs 200 domains"):
        DATASETS["fmow"](0, num_train=100, num_test=100)
    small = {"num_train": 2, "num_test": 1}
    (root / "fmow/images/rgb_img_1.png").unlink()
    with pytest.raises(DataError, match=r"rgb_img_1.png is missing or no image"):
        DATASETS["fmow"](0, **small)
    write_image(root / "fmow/images/rgb_img_1.png", np.zeros((20, 16, 3), np.uint8))
    with pytest.raises(DataError, match=r"images of shapes \[\(16, 16, 3\), \(20, 16, 3\)\]"):
        DATASETS["fmow"](0, **small)
    (root / "fmow/resnet50.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="holds no weights of a ResNet-50"):
        DATASETS["fmow"](0, **small)
    (root / "fmow/resnet50.safetensors").unlink()
    with pytest.raises(AbsentError) as caught:
        DATASETS["fmow"](0, **small)
    one_sentence(caught, "fmow/resnet50.pth", "thetafield data fetch fmow")
    write_lines(root / "fmow/rgb_metadata.csv", ["split,category", "train,a"])
    placed(root / "fmow/resnet50.pth").touch()
    with pytest.raises(DataError, match="expected the published CSV with the columns split"):
        DATASETS["fmow"](0, **small)


# --- arXiv

SUBJECTS = ["cs.LG", "math.AG", "hep-ph", "astro-ph.GA", "quant-ph", "cond-mat.str-el", "q-bio.NC", "gr-qc", "stat.ML"]
SUBJECTS += ["econ.EM", "nlin.CD"]  # the last one is rare


def encoder(titles):
    """Two numbers that tell titles apart: their length, and the number they end with."""
    return np.array([[len(title), float(title.split()[-1])] for title in titles]) / 100


def write_arxiv(root, publishers=85, papers=10):
    header = ",".join(["prefix", "publisher", "n_arxiv", *STATISTICS, "arxiv_mean_year"])
    table = [f"10.{1000 + i},House {i:02d},9,{','.join(str(i + k) for k in range(13))},2010" for i in range(publishers)]
    table += [f"10.5555,Unknown House,9,0,{',' * 12}2010"]
    write_lines(root / "arxiv/publishers.csv", [header, *table])
    lines, serial = [], 0

    def add(**fields):
        record = {
            "id": f"0704.{len(lines):04d}",
            "submitter": "Ada",
            "authors": "Ada L. and Évariste G.",
            "title": "Nothing",
            "comments": None,
            "journal-ref": None,
            "doi": None,
            "report-no": None,
            "categories": "cs.LG",
            "license": None,
            "abstract": '  A "quoted"\n abstract.\n',
            "versions": [{"version": "v1", "created": "Mon, 2 Apr 2007 19:18:42 GMT"}],
            "update_date": "2008-11-26",
            "authors_parsed": [["L.", "Ada", ""]],
        }
        lines.append(json.dumps(record | fields))

    for publisher in range(publishers):
        for paper in range(papers if publisher else 1):
            subject = SUBJECTS[paper % 10] if publisher != 7 or paper else SUBJECTS[10]
            title = f"On the {subject.split('.')[0]}\n  of {serial}"
            add(title=title, doi=f"10.{1000 + publisher}/X.{serial}", categories=f"{subject} physics.gen-ph")
            serial += 1
    add(title="No DOI 1")
    add(title="Another house 2", doi="10.7777/a")
    add(title="A house without statistics 3", doi="10.5555/a")
    write_lines(root / "arxiv/arxiv-metadata-oai-snapshot.json", lines)


def test_arxiv(root):
    write_arxiv(root)
    data = DATASETS["arxiv"](0, encoder, per_domain=6)
    train, test = data.train, data.test["publishers"]
    assert len(train) == 40 and len(test) == 43 and data.predictor_options == {"hidden": (50, 50)}
    assert train.classes.tolist() == sorted(subject.split(".")[0] for subject in SUBJECTS[:10])
    assert train.x.dtype == torch.float16 and train.x.shape == (240, 2) and set(train.sizes.tolist()) == {6}
    ids = [*train.ids.tolist(), *test.ids.tolist()]
    assert len(set(ids)) == 83 and not {"House 00", "House 07"} & set(ids)  # the two smallest are left out
    assert len(train.descriptors) == 13 and train.descriptors[0] == "log journals" and train.factors[10] == "authors"
    number = np.array([int(name.split()[1]) for name in train.ids])
    assert_allclose(train.z[:, 0], np.log1p(number), rtol=1e-6)
    assert_allclose(train.z[:, 11], number + 11)
    # The embedding of "On the cs of 12" tells which paper it is: 12 % 10 is its subject, 12 // 10 its publisher.
    serial = (train.x[:, 1].double() * 100 - 1).round().numpy()
    publisher = np.repeat(number, 6)
    assert (np.abs(serial + 1 - (publisher * 10 - 9 + 4.5)) < 7).all()
    lengths = (train.x[:, 0].double() * 100).round().int()
    for length, label, paper in zip(lengths.tolist(), train.y.tolist(), serial.tolist(), strict=True):
        digits = len(str(int(paper)))
        assert length in [len(f"On the {train.classes[label]} of ") + digits + more for more in (-1, 0, 1)]


def test_arxiv_is_split_by_an_option_and_read_once(root, monkeypatch):
    write_arxiv(root)
    calls = []

    def counting(titles):
        calls.append(titles)
        return encoder(titles)

    first, again, other = (DATASETS["arxiv"](seed, counting, split=split) for seed, split in ((0, 0), (5, 0), (0, 1)))
    assert first.train.ids.tolist() == again.train.ids.tolist() != other.train.ids.tolist()
    assert torch.equal(first.train.x, again.train.x) and len(calls) == 1
    assert "On the cs of 1" in calls[0]  # on one line
    DATASETS["arxiv"](0, encoder)
    assert len(calls) == 1


def test_arxiv_embeds_by_sentence_transformers(root, monkeypatch):
    write_arxiv(root)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(NeedError, match=r"pip install 'thetafield\[text\]'"):
        DATASETS["arxiv"](0)
    names = []

    class SentenceTransformer:
        def __init__(self, name):
            names.append(name)
            if "broken" in name:
                raise OSError("no such model")

        def encode(self, titles, batch_size, normalize_embeddings):
            assert normalize_embeddings
            return encoder(titles)

    library = types.ModuleType("sentence_transformers")
    library.SentenceTransformer = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    check_dataset("arxiv")
    assert names == ["sentence-transformers/all-MiniLM-L6-v2"]  # once, then it is kept
    (root / "arxiv/all-MiniLM-L6-v2").mkdir()
    DATASETS["arxiv"](0, per_domain=3)
    assert names[1:] == [str(root / "arxiv/all-MiniLM-L6-v2")]
    monkeypatch.setattr("thetafield.datasets.arxiv.MODEL", "broken")
    with pytest.raises(NeedError, match="broken could not be loaded"):
        DATASETS["arxiv"](0, per_domain=2)


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        ("not json\n", "is damaged"),
        ('{"title": "a", "doi": "10.1000/a"', "is damaged"),
        ('{"title": 3, "doi": "10.1000/a", "categories": "cs.LG"}\n', "is damaged"),
        ('{"name": "a"}\n', "no paper with a title"),
        ("", "is damaged"),
    ],
)
def test_a_damaged_snapshot_is_named(root, content, finding):
    write_arxiv(root)
    path = root / "arxiv/arxiv-metadata-oai-snapshot.json"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        DATASETS["arxiv"](0, encoder)
    one_sentence(caught, path, finding)


def test_arxiv_needs_enough_publishers_and_numbers(root):
    write_arxiv(root, publishers=5)
    with pytest.raises(DataError, match="arxiv needs 83 domains"):
        DATASETS["arxiv"](0, encoder)
    with pytest.raises(DataError, match="The encoder made an array of shape"):
        DATASETS["arxiv"](0, lambda titles: np.zeros((1, 2)), num_train=2, num_test=1)


# --- Traffic


def write_traffic(root, stream, days=4):
    flow = stream.integers(0, 60, (days, 24, 32, 32, 2)).astype(np.float64)
    poi = stream.integers(0, 9, (32, 32, 5)).astype(np.int64)
    poi[3, 4] = 0
    np.save(placed(root / "traffic/flow.npy"), flow)
    np.save(root / "traffic/poi.npy", poi)
    return flow, poi


def test_traffic(root, stream):
    flow, poi = write_traffic(root, stream)
    data = DATASETS["traffic"](0)
    train, test = data.train, data.test["regions"]
    assert len(train) == 100 and len(test) == 924 and data.predictor_options == {"hidden": (64, 64)}
    assert train.x.shape == (100 * 16, 96) and train.y.shape == (100 * 16, 6) and train.classes is None
    assert train.features[:3] == ("inflow -48 h", "outflow -48 h", "inflow -47 h")
    places = [tuple(map(int, region.split("-"))) for region in [*train.ids, *test.ids]]
    assert sorted(places) == [(row, column) for row in range(32) for column in range(32)]
    hours = flow.reshape(-1, 32, 32, 2)
    known = np.stack([hours[:, row, column] for row, column in places[:100]])
    mean, spread = known.mean((0, 1)), known.std((0, 1))
    for part, domain in ((train, 0), (train, 99), (test, 500)):
        row, column = map(int, part.ids[domain].split("-"))
        for window in (0, 1, 15):
            begin = 3 * window
            sample = int(part.offsets[domain]) + window
            past = (hours[begin : begin + 48, row, column] - mean) / spread
            assert_allclose(part.x[sample], past.ravel(), atol=1e-5)
            assert_allclose(part.y[sample], hours[begin + 48 : begin + 51, row, column].ravel())
        shares = poi[row, column] / max(poi[row, column].sum(), 1)
        assert_allclose(part.z[domain], shares, rtol=1e-6)
    empty = places.index((3, 4))
    assert (train.z[empty] if empty < 100 else test.z[empty - 100]).tolist() == [0] * 5


def test_traffic_is_split_by_an_option_and_checked(root, stream):
    write_traffic(root, stream)
    first, again, other = (DATASETS["traffic"](seed, split=split) for seed, split in ((0, 0), (5, 0), (0, 1)))
    assert first.train.ids.tolist() == again.train.ids.tolist() != other.train.ids.tolist()
    check_dataset("traffic")
    assert len(DATASETS["traffic"](0, step=24).train.x) == 100 * 2
    with pytest.raises(OptionError, match="traffic has 1024 regions"):
        DATASETS["traffic"](0, num_train=200)


def test_hours_without_data_are_no_target(root, stream):
    flow, _ = write_traffic(root, stream)
    flow[2, 7] = 0  # hour 55 is in the targets of the window that begins at hour 6
    np.save(root / "traffic/flow.npy", flow)
    data = DATASETS["traffic"](0)
    assert set(data.train.sizes.tolist()) == {15}
    assert not data.train.y.view(100, 15, 6).eq(0).all(2).any()
    np.save(root / "traffic/flow.npy", flow / 100)
    with pytest.raises(DataError, match="no 51 hours on end with a flow to predict"):
        DATASETS["traffic"](0)


@pytest.mark.parametrize(
    ("name", "change", "finding"),
    [
        ("flow", lambda flow: flow[..., :1], "it has shape (4, 24, 32, 32, 1)"),
        ("flow", lambda flow: -flow, "a number is negative"),
        ("flow", lambda flow: np.where(flow > 50, np.nan, flow), "negative, infinite or missing"),
        ("flow", lambda flow: flow.astype(str).astype(object), "is damaged"),
        ("poi", lambda poi: poi[:4], "it has shape (4, 32, 5)"),
        ("poi", lambda poi: poi.astype(str).reshape(32, 32, 5).astype("U3")[..., :1] + "x", "is damaged"),
    ],
)
def test_damaged_arrays_are_named(root, stream, name, change, finding):
    arrays = dict(zip(("flow", "poi"), write_traffic(root, stream), strict=True))
    path = root / f"traffic/{name}.npy"
    np.save(path, change(arrays[name]))
    with pytest.raises(DataError) as caught:
        DATASETS["traffic"](0)
    one_sentence(caught, path, finding)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match="is damaged"):
        DATASETS["traffic"](0)
