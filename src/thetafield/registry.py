"""Names to classes and functions: a new method, dataset or predictor is one new file and no other edit."""

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Generic, TypeVar

from thetafield.errors import OptionError, closest

T = TypeVar("T", bound=Callable)


class Registry(Generic[T]):
    """The entries that the modules of one package register under a name.

    Args:
        kind: What an entry is, in messages: "method", "dataset", "predictor".
        package: The package whose modules register entries; they are imported on the first look-up, except kernels
            (`*_kernel`), which register nothing and need Triton.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._entries: dict[str, T] = {}
        self._revisions: dict[str, int] = {}
        self._complete = False

    def register(self, name: str, *, revision: int = 0) -> Callable[[T], T]:
        """Return a decorator that enters a class or function under `name`.

        Args:
            name: The name.
            revision: Raised where the same options and the same seed come to give something else.
        """

        def enter(entry: T) -> T:
            if name in self._entries and self._entries[name].__module__ != entry.__module__:
                raise OptionError(f"Two {self.kind}s are registered as {name!r}: rename one of them.")
            self._entries[name], self._revisions[name] = entry, revision
            return entry

        return enter

    def _discover(self) -> None:
        if not self._complete:
            package = import_module(self.package)
            for module in pkgutil.iter_modules(package.__path__, f"{self.package}."):
                if not module.name.endswith("_kernel"):
                    import_module(module.name)
            self._complete = True

    def names(self) -> list[str]:
        """Return the registered names in order."""
        self._discover()
        return sorted(self._entries)

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return iter([(name, self._entries[name]) for name in self.names()])

    def revision(self, name: str) -> int:
        """Return how often an entry has changed what it gives."""
        self._discover()
        return self._revisions.get(name, 0)

    def __contains__(self, name: str) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> T:
        self._discover()
        if name not in self._entries:
            raise OptionError(f"There is no {self.kind} {name!r}; {closest(name, self._entries)}")
        return self._entries[name]
