"""arXiv: the subject of a paper from its title, publisher by publisher.

Inputs: 384 numbers, the embedding of the title by the sentence encoder all-MiniLM-L6-v2; computed once and kept in half
precision.

Target: the archive of the paper's primary category (cs, math, hep-ph, …); the ten with most titles.

Domain: the titles of papers that one publisher accepted, by the prefix of their DOI; at most `per_domain` of them,
always the same. Papers without a DOI and publishers without statistics are left out; the 83 publishers with most titles
are taken.

Descriptors: what SCImago says of the publisher's journals: log(1 + n) of their number, of their documents in 2024 and
in three years, of citations and references, of the largest and the mean h-index; SJR, citations and references per
document, the share of female authors in %, the shares of open access and of the first quartile. 40 publishers drawn by
`split` are for training, the test group `publishers` is the rest.

Source: Kaggle Cornell-University/arxiv, arxiv-metadata-oai-snapshot.json, and a table of publishers, to be put at
arxiv/ under the data root. Licence: CC0 for the metadata.
"""

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from pyarrow import json
from torch import Tensor

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.cache import cached
from thetafield.datasets.groups import largest_groups
from thetafield.datasets.root import data_root, read_table
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.errors import DataError, NeedError
from thetafield.options import Count, Natural
from thetafield.streams import numpy_stream

SOURCE = Source(
    dataset="arxiv",
    origin="Kaggle Cornell-University/arxiv (arxiv-metadata-oai-snapshot.json, about 4 GB; an account is needed)",
    licence="CC0 1.0 (metadata); none stated (publishers.csv)",
    files=(DataFile("arxiv/arxiv-metadata-oai-snapshot.json"), DataFile("arxiv/publishers.csv")),
    note=(
        "The snapshot has one JSON object a line, of which title, doi and categories are read. publishers.csv has a "
        "line for each publisher with the columns prefix (of its DOIs), publisher and thirteen sjr_ columns made from "
        "SCImago (scimagojr.com); the paper's are from OpenAlex. Titles are embedded by sentence-transformers (pip "
        "install 'thetafield[text]') with the model in arxiv/all-MiniLM-L6-v2 under the data root, or else fetched."
    ),
)
FIELDS = {"title": pa.string(), "doi": pa.string(), "categories": pa.string()}
# Column of the table → name of the descriptor, and the factor behind it; counts, which span decades, as logarithms.
STATISTICS = {
    "sjr_n_sources": ("log journals", "size"),
    "sjr_docs_2024": ("log documents 2024", "size"),
    "sjr_docs_3y": ("log documents 3 years", "size"),
    "sjr_cites_3y": ("log citations 3 years", "size"),
    "sjr_refs": ("log references", "size"),
    "sjr_h_max": ("log largest h-index", "standing"),
    "sjr_h_mean": ("log mean h-index", "standing"),
    "sjr_sjr_wmean": ("SJR", "standing"),
    "sjr_cites_per_doc": ("citations per document", "standing"),
    "sjr_refs_per_doc": ("references per document", "references"),
    "sjr_pct_female": ("female authors", "authors"),
    "sjr_oa_share": ("open access", "access"),
    "sjr_q1_share": ("first quartile", "standing"),
}
PREFIX = re.compile(r"(10\.\d{4,9})/")
ARCHIVE = re.compile(r"[a-z-]+")  # the primary category comes first, and its archive before the dot
CLASSES = 10
BLOCK = 2**26  # bytes parsed at once: a line with thousands of authors has to fit
MODEL = "all-MiniLM-L6-v2"
Embed = Callable[[list[str]], np.ndarray]


def minilm(titles: list[str]) -> np.ndarray:
    """Return the embeddings of titles by all-MiniLM-L6-v2, shape (M, 384)."""
    try:
        library = import_module("sentence_transformers")
    except ImportError:
        raise NeedError("arxiv needs sentence-transformers to embed titles: pip install 'thetafield[text]'.") from None
    local = data_root() / "arxiv" / MODEL
    try:
        model = library.SentenceTransformer(str(local) if local.is_dir() else f"sentence-transformers/{MODEL}")
    except (OSError, ValueError) as error:
        finding = " ".join(str(error).split())[:200].rstrip(".")
        raise NeedError(f"The sentence encoder {MODEL} could not be loaded ({finding}): put it at {local}.") from None
    return np.asarray(model.encode(titles, batch_size=256, normalize_embeddings=True))


@DATASETS.register("arxiv")
@from_files(SOURCE)
def arxiv(
    seed: int,
    embed: Embed = minilm,
    *,
    num_train: Count = 40,
    num_test: Count = 43,
    split: Natural = 0,
    per_domain: Count = 500,
) -> Dataset:
    """Read titles of arXiv papers, one domain per publisher, with the publisher's statistics as its descriptor.

    Args:
        seed: Not used: the publishers are drawn by `split`.
        embed: Turns titles into vectors.
        num_train: Number of training publishers.
        num_test: Number of test publishers.
        split: Which publishers are for training: each number is one draw.
        per_domain: Most titles of a publisher.
    """
    snapshot, publishers = SOURCE.paths()
    columns = {"prefix": pa.string(), "publisher": pa.string(), **dict.fromkeys(STATISTICS, pa.float64())}
    described = read_table(publishers, columns).drop_null()
    named = dict(zip(described["prefix"].to_pylist(), described["publisher"].to_pylist(), strict=True))
    key = {
        "version": 1,
        "domains": num_train + num_test,
        "per domain": per_domain,
        "embed": f"{embed.__module__}.{embed.__qualname__}",
    }

    def make() -> dict[str, Tensor]:
        titles, publisher, archive = _papers(snapshot, named)
        kinds, counts = np.unique(archive, return_counts=True)
        kinds = np.sort(kinds[np.argsort(-counts, kind="stable")][:CLASSES])
        rows = np.flatnonzero(np.isin(archive, kinds))
        rows = rows[largest_groups(publisher[rows], num_train + num_test, per_domain, "arxiv", snapshot)]
        ids, sizes = np.unique(publisher[rows], return_counts=True)
        return {
            "x": _embedded([titles[row] for row in rows.tolist()], embed),
            "y": torch.from_numpy(np.searchsorted(kinds, archive[rows])),
            "sizes": torch.from_numpy(sizes),
            "ids": _bytes(ids),
            "classes": _bytes(kinds),
        }

    made = cached("arxiv", key, [snapshot, publishers], make)
    ids = _words(made["ids"])
    names, factors = zip(*STATISTICS.values(), strict=True)
    values = np.column_stack([described[column].to_numpy() for column in STATISTICS])
    counts = [name.startswith("log ") for name in names]
    values[:, counts] = np.log1p(values[:, counts])
    place = {publisher: row for row, publisher in reversed(list(enumerate(described["publisher"].to_pylist())))}
    whole = DomainSet(
        x=made["x"],
        y=made["y"],
        z=torch.from_numpy(values[[place[publisher] for publisher in ids.tolist()]].astype(np.float32)),
        offsets=torch.cat([made["sizes"].new_zeros(1), made["sizes"].cumsum(0)]),
        ids=ids,
        descriptors=names,
        factors=factors,
        classes=_words(made["classes"]),
    )
    drawn = numpy_stream(split, "arxiv", "split").permutation(len(whole))
    return Dataset(
        name="arxiv",
        train=whole.select(np.sort(drawn[:num_train])),
        test={"publishers": whole.select(np.sort(drawn[num_train:]))},
        predictor="mlp",
        predictor_options={"hidden": (50, 50)},
    )


def _papers(path: Path, named: Mapping[str, str]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return title, publisher and archive of the papers with a DOI whose prefix is named."""
    parse = json.ParseOptions(explicit_schema=pa.schema(list(FIELDS.items())), unexpected_field_behavior="ignore")
    try:
        table = json.read_json(path, json.ReadOptions(block_size=BLOCK), parse)
    except (pa.ArrowException, OSError) as error:
        finding = " ".join(str(error).split()).rstrip(".")
        raise DataError(
            f"{path} is damaged ({finding}): expected one JSON object a line with title, doi and categories, so get "
            "the file again."
        ) from None
    papers = [
        (" ".join(title.split()), named[prefix[1]], archive[0])
        for batch in table.select(list(FIELDS)).to_batches()
        for title, doi, categories in zip(*batch.to_pydict().values(), strict=True)
        if title
        and (prefix := PREFIX.search(doi or ""))
        and prefix[1] in named
        and (archive := ARCHIVE.match(categories or ""))
    ]
    if not papers:
        raise DataError(f"{path} has no paper with a title, a category and a DOI of a known publisher: get it again.")
    titles, found, archives = zip(*papers, strict=True)
    return list(titles), np.array(found), np.array(archives)


def _embedded(titles: list[str], embed: Embed) -> Tensor:
    vectors = np.asarray(embed(titles), dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(titles) or not np.isfinite(vectors).all():
        raise DataError(f"The encoder made an array of shape {vectors.shape} for {len(titles)} titles, or no numbers.")
    return torch.from_numpy(vectors).half()


def _bytes(words: np.ndarray) -> Tensor:
    """Return words as a tensor, which a cache can keep."""
    return torch.tensor(list("\n".join(words.tolist()).encode()), dtype=torch.uint8)


def _words(content: Tensor) -> np.ndarray:
    return np.array(bytes(content.tolist()).decode().split("\n"))
