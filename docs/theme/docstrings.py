"""Docstrings as the API pages need them: examples as code, and no marks of other tools."""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")
REFERENCE = re.compile(r"^Reference:\n((?: {4}.*(?:\n|$))+)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Turns `Example:` into the section of examples, `Reference:` into a line, and roles such as :class: into code."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute before it is parsed."""
        if obj.docstring is None:
            return
        text = ROLE.sub(r"`\1`", obj.docstring.value)
        text = re.sub(r"^( *)Example:$", r"\1Examples:", text, flags=re.MULTILINE)
        obj.docstring.value = REFERENCE.sub(lambda found: f"**Reference:** {' '.join(found[1].split())}\n", text)
