"""CSV as people have it: other separators than a comma, decimal commas, thousands apart, other encodings than UTF-8."""

import re
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, types

SEPARATORS = ",;\t|"
# UTF-8, what some spreadsheets write, Western Windows, and Latin-1, in which every byte is a sign.
ENCODINGS = ("utf-8", "utf-16", "cp1252", "latin-1")
LOOKED_AT = 2**16  # bytes at the beginning
DECIMAL_COMMA = re.compile(r"(?:^|;)\s*[-+]?\d+,\d+\s*(?=;|$)", re.MULTILINE)
# Not three digits behind the point: these may be thousands.
DECIMAL_POINT = re.compile(r"(?:^|;)\s*[-+]?\d+\.(?!\d{3}\s*(?:;|$))\d+\s*(?=;|$)", re.MULTILINE)


def read_csv_file(path: Path) -> pa.Table:
    """Read a CSV file whose separator is the sign among , ; tab | that its first line has most of.

    With semicolons, numbers such as 3,5 are decimal where none is written with a point. A file that is not UTF-8 is
    taken for UTF-16 where it begins so, and otherwise for Windows-1252, or Latin-1 where it has bytes that mean nothing
    there: names may be misspelt, but differ where they differed. Thousands that are set apart (1,003) are read.

    Raises:
        ArrowInvalid: It is empty, or its lines differ in length.
    """
    with path.open("rb") as file:
        start = file.read(LOOKED_AT)
    encoding = _encoding(path, start)
    text = start.decode(encoding, errors="ignore").lstrip("\ufeff")
    if not text.strip():
        raise pa.ArrowInvalid("the file is empty: give a table with a line of column names and one line per sample")
    separator = _separator(text.splitlines()[0])
    comma = separator == ";" and DECIMAL_COMMA.search(text) and not DECIMAL_POINT.search(text)
    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(encoding=encoding),
        parse_options=csv.ParseOptions(delimiter=separator),
        convert_options=csv.ConvertOptions(strings_can_be_null=True, decimal_point="," if comma else "."),
    )
    if not table.num_rows:
        raise pa.ArrowInvalid("it has column names and no rows: give one line per sample")
    return _without_groups(table, "." if comma else ",")


def _without_groups(table: pa.Table, mark: str) -> pa.Table:
    """Read text as numbers where all of a column are such and have their thousands set apart by a mark: 1,003.5.

    That 1,003 is not a decimal comma has to be known: from one of these columns (1,234,567 or 1,003.5), or from one
    with decimals of the other kind.

    >>> _without_groups(pa.table({"a": ["1,003", "12", None], "b": [0.5, 1.5, 2.5]}), ",").to_pydict()
    {'a': [1003, 12, None], 'b': [0.5, 1.5, 2.5]}
    """
    point = "." if mark == "," else ","
    number = re.compile(rf"[-+]?(\d+|[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+)({re.escape(point)}\d+)?")
    found = dict[int, list[str]]()
    for place in (place for place, field in enumerate(table.schema) if types.is_string(field.type)):
        texts = [text for text in table[place].unique().to_pylist() if text is not None]
        if any(mark in text for text in texts) and all(number.fullmatch(text.strip()) for text in texts):
            found[place] = texts
    every = [text for texts in found.values() for text in texts]
    told = any(text.count(mark) > 1 or (mark in text and point in text) for text in every)
    if not told and not any(types.is_floating(field.type) for field in table.schema):
        return table
    for place, texts in found.items():
        plain = {text: text.strip().replace(mark, "").replace(point, ".") for text in texts}
        whole = all(digits.lstrip("+-").isdigit() and len(digits) < 18 for digits in plain.values())
        numbers = {None: None} | {text: (int if whole else float)(digits) for text, digits in plain.items()}
        column = pa.array([numbers[text] for text in table[place].to_pylist()])
        table = table.set_column(place, table.schema.field(place).name, column)
    return table


def _separator(head: str) -> str:
    """Return the separator of the line of column names; what stands in quotes does not count.

    >>> _separator('a;"b,c,d";e'), _separator("one")
    (';', ',')
    """
    plain = re.sub(r'"[^"]*"', "", head)
    return max(SEPARATORS, key=plain.count)


def _encoding(path: Path, start: bytes) -> str:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ENCODINGS[1]
    if b"\x00" in start:
        raise pa.ArrowInvalid("it holds bytes that no text has: save it as CSV in UTF-8")
    return next(encoding for encoding in (ENCODINGS[0], *ENCODINGS[2:]) if _decodes(path, encoding))


def _decodes(path: Path, encoding: str) -> bool:
    try:
        with path.open(encoding=encoding) as file:
            while file.read(2**20):
                pass
    except UnicodeDecodeError:
        return False
    return True
