"""One model for every domain, even those nobody has seen.

A domain is a data set with a continuous descriptor z. `thetafield` learns the parameter field θ(z) from the domains
at hand and gives back an ordinary model for any z. Public names are loaded on first use, so that `thetafield --help`
and `import thetafield` answer at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thetafield.data.domains import DomainSet
    from thetafield.estimators import FieldClassifier, FieldRegressor, load_field

__version__ = "0.1.0"
__all__ = ["DomainSet", "FieldClassifier", "FieldRegressor", "__version__", "load_field"]

_HOME = {
    "DomainSet": "thetafield.data.domains",
    "FieldClassifier": "thetafield.estimators",
    "FieldRegressor": "thetafield.estimators",
    "load_field": "thetafield.estimators",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'thetafield' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
