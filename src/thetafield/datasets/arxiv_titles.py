"""arXiv titles: the archive of a paper from its title, from publisher to publisher.

Inputs: the title as a vector of 384 numbers by the language model all-MiniLM-L6-v2. Vectors have length one; they are
multiplied by √384, so that a number is 1 in the root mean square, and kept as the 16-bit numbers they are.

Target: the archive of the paper's primary category (math, physics, cs, …), one of the ten most frequent ones of the
whole file, test publishers included: they say what is asked, not what the answer is. Other titles are left out.

Domain: a publisher, that is the prefix of a DOI, with at most 500 titles; a publisher with fewer than 50 is left out
(there is none). A title that recurs with the same publisher is taken once: every tenth row repeats another under its
arXiv number misread as a decimal number.

Descriptors: what SCImago counts for the publisher's journals in 2024 (the columns sjr_*), in logarithms log(1 + n)
where a few publishers have most of it: journals, documents of one and three years, citations and references, the
highest and the mean h-index, the mean SJR rank, citations per document; as they are: references per document, women
among the authors (%), share of open and of first-quartile journals. Publishers that were not found (no journal) get
the medians of the training publishers. The columns arxiv_* are left out, since they are made from the samples.

A random 60 % of the publishers are for training, the group `unseen` is the rest.

Source: GitHub staeiou/arxiv_archive (titles; licence: none stated) and SCImago 2024 by way of PyPI bibliometria; made
into arxiv_cap500.parquet, arxiv_cap500_minilm_f16.npy (the vectors of its rows) and publishers.csv, to be put at arxiv/
under the data root.
"""

from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.root import damaged, read_table
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.datasets.tables import damaged_file, read_parquet
from thetafield.errors import DataError
from thetafield.options import Natural
from thetafield.streams import numpy_stream

SOURCE = Source(
    dataset="arxiv-titles",
    origin="GitHub staeiou/arxiv_archive (titles) and PyPI bibliometria (SCImago 2024)",
    licence="none stated",
    files=(
        DataFile("arxiv/arxiv_cap500.parquet"),
        DataFile("arxiv/arxiv_cap500_minilm_f16.npy"),
        DataFile("arxiv/publishers.csv"),
    ),
    note="Embed the titles with all-MiniLM-L6-v2 (384 numbers each, 16 bits, in the order of the rows).",
)
COLUMNS = {"title": pa.string(), "prefix": pa.string(), "archive": pa.string()}
JOURNALS = "sjr_n_sources"
SKEWED = (
    JOURNALS,
    "sjr_docs_2024",
    "sjr_docs_3y",
    "sjr_cites_3y",
    "sjr_refs",
    "sjr_h_max",
    "sjr_h_mean",
    "sjr_sjr_wmean",
    "sjr_cites_per_doc",
)
EVEN = ("sjr_refs_per_doc", "sjr_pct_female", "sjr_oa_share", "sjr_q1_share")
STATISTICS = (*SKEWED, *EVEN)
PUBLISHERS = {"prefix": pa.string(), "publisher": pa.string(), **dict.fromkeys(STATISTICS, pa.float64())}
NUM_ARCHIVES = 10
FEWEST = 50
TRAINING = 0.6


@DATASETS.register("arxiv-titles")
@from_files(SOURCE)
def arxiv_titles(seed: int, *, split: Natural = 0) -> Dataset:
    """Read titles of arXiv papers as vectors, one domain per publisher.

    Args:
        seed: Not used, since all that is drawn is the split.
        split: Which random split of the publishers into training and unseen ones.
    """
    path, embedded, statistics = SOURCE.paths()
    papers = read_parquet(path, COLUMNS)
    vectors = _vectors(embedded, papers.num_rows)
    rows = _distinct(path, papers)
    prefix, archive = (papers[name].to_numpy().astype(str)[rows] for name in ("prefix", "archive"))
    frequent = _most_frequent(archive)
    kept = np.isin(archive, frequent)
    prefixes, sizes = np.unique(prefix[kept], return_counts=True)
    prefixes = prefixes[sizes >= FEWEST]
    if len(prefixes) < 2:
        raise DataError(
            f"{path} has {len(prefixes)} publishers with at least {FEWEST} titles, but needs two to split: get the "
            "whole file."
        )
    kept &= np.isin(prefix, prefixes)
    seen = numpy_stream(split, "arxiv-titles", "split").permutation(len(prefixes)) < round(TRAINING * len(prefixes))
    names, z = _publishers(statistics, prefixes, seen)
    whole = DomainSet.from_arrays(
        vectors[rows[kept]] * np.float16(sqrt(vectors.shape[1])),
        archive[kept],
        domain=np.searchsorted(prefixes, prefix[kept]),
        z=z,
        descriptors=[name.removeprefix("sjr_") for name in STATISTICS],
        classification=True,
    )
    whole = replace(whole, x=whole.x.half(), ids=names)  # exact, since the vectors came in 16 bits
    return Dataset(
        name="arxiv-titles",
        train=whole.select(seen),
        test={"unseen": whole.select(~seen)},
        predictor="mlp",
        predictor_options={"hidden": (50, 50)},
    )


def _vectors(path: Path, num_rows: int) -> np.ndarray:
    """Return the embedded titles, shape (rows, 384)."""
    expected = f"{num_rows:,} vectors of 16-bit numbers, one for each row of arxiv_cap500.parquet"
    try:
        vectors = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise damaged_file(path, str(error), expected) from None
    if not isinstance(vectors, np.ndarray):
        raise damaged_file(path, "it is an archive of arrays", expected)
    if vectors.ndim != 2 or len(vectors) != num_rows or vectors.dtype != np.float16:
        raise damaged_file(path, f"it has shape {vectors.shape} and type {vectors.dtype}", expected)
    if not np.isfinite(vectors).all():
        raise damaged_file(path, "a number is not finite", expected)
    return vectors


def _distinct(path: Path, papers: pa.Table) -> np.ndarray:
    """Return the first row of each title of each publisher, in the order of the file."""
    if any(column.null_count for column in papers.columns):
        raise damaged_file(path, "a title, prefix or archive is missing", "all of them")
    numbered = papers.append_column("row", pa.array(np.arange(papers.num_rows)))
    first = numbered.group_by(["prefix", "title"]).aggregate([("row", "min")])
    return np.sort(first["row_min"].to_numpy())


def _most_frequent(archive: np.ndarray) -> np.ndarray:
    """Return the most frequent archives; of equally frequent ones those first in the alphabet."""
    names, counts = np.unique(archive, return_counts=True)
    return names[np.argsort(-counts, kind="stable")[:NUM_ARCHIVES]]


def _publishers(path: Path, prefixes: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return names and descriptors of the publishers; missing values are medians of those in `seen`."""
    table = read_table(path, PUBLISHERS)
    row_of = {prefix: row for row, prefix in enumerate(table["prefix"].to_pylist())}
    unknown = [prefix for prefix in prefixes.tolist() if prefix not in row_of]
    if unknown:
        raise damaged(path, PUBLISHERS, f"there is no prefix {unknown[0]}")
    table = table.take([row_of[prefix] for prefix in prefixes.tolist()])
    z = np.column_stack([table[name].to_numpy() for name in STATISTICS])
    if (z < 0).any() or np.isinf(z).any():
        raise damaged(path, PUBLISHERS, "a count is negative or infinite")
    z[z[:, 0] == 0] = np.nan
    z[:, : len(SKEWED)] = np.log1p(z[:, : len(SKEWED)])
    if np.isnan(z[seen]).all(0).any():
        raise damaged(path, PUBLISHERS, "a column has no value for any training publisher")
    names = np.char.add(np.char.add(prefixes, " "), table["publisher"].to_numpy().astype(str))
    return names, np.where(np.isnan(z), np.nanmedian(z[seen], 0), z)
