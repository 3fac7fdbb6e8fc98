"""Small populations whose answer is known, and a comparison that runs in this process."""

import csv
from unittest.mock import patch

import numpy as np

from benched import Here
from thetafield import DomainSet
from thetafield.compare import budget, compare
from thetafield.compare.budget import Rung
from thetafield.compare.population import StoredPopulation

# Enough to tell methods apart on the domains below.
SMALL = {
    "erm": {"steps": 60},
    "erm-d": {"steps": 60},
    "trees": {"rounds": 10, "lr": 0.3, "min_samples": 5},
    "trees-x": {"rounds": 10, "lr": 0.3, "min_samples": 5},
    "neurallio": {
        "epochs": 3,
        "base_steps": 30,
        "tune_steps": 10,
        "samples": 8,
        "rank": 8,
        "latent_dim": 4,
        "hidden": 8,
        "metric": False,
        "select": False,
    },
}
# Enough to have run, where the errors do not matter.
BRIEF = {"erm": {"steps": 4}, "trees-x": {"rounds": 2, "min_samples": 5}}


def stations(kind, num_domains=20, rows=30, seed=0):
    """Domains whose boundary turns with z ("turning"), stays ("steady"), or is a step along x ("steps")."""
    stream = np.random.default_rng(seed)
    z = stream.uniform(size=(num_domains, 2)).round(4)
    domain = np.repeat(np.arange(num_domains), rows)
    x = stream.uniform(-1, 1, size=(num_domains * rows, 2)).round(4)
    if kind == "steps":
        y = (np.floor(4 * x[:, 0]) % 2 == 0) ^ (np.floor(3 * x[:, 1]) % 2 == 0)
    else:
        angle = 5 * z[domain, 0] if kind == "turning" else np.zeros(len(x))
        y = x[:, 0] * np.cos(angle) + x[:, 1] * np.sin(angle) > 0
    return x, np.where(y, "yes", "no"), domain, z


def domain_set(kind, **settings):
    x, y, domain, z = stations(kind, **settings)
    return DomainSet.from_arrays(x, y, domain=domain, z=z, descriptors=["height", "noise"])


def table_file(path, kind="turning", separator=",", encoding="utf-8", **settings):
    x, y, domain, z = stations(kind, **settings)
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(["place", "height", "noise", "x0", "x1", "größe"])
        for row in range(len(x)):
            writer.writerow([f"P{domain[row]:02d}", *z[domain[row]], *x[row], y[row]])
    return path


# One setting is drawn beside the defaults, at any speed of the machine: the plan is then the same everywhere.
ONCE = (Rung(1.0, 1, 1),)
UNCHOSEN = (Rung(1.0),)


def compared(data, out, methods=("erm", "trees-x"), workers=None, options=SMALL, **settings):
    """Compare in this process, for a few steps each."""
    options = {method: options[method] for method in methods}
    settings = {"budget": 60.0, "jobs": 1} | settings
    with patch.object(budget, "DRAWN", ONCE), patch.object(budget, "CHOSEN", UNCHOSEN):
        return compare(data, out, methods=methods, options=options, hire=lambda count: workers or Here(), **settings)


def brief(data, out, workers=None, **settings):
    """Compare two methods that learn next to nothing."""
    return compared(data, out, workers=workers, options=BRIEF, **settings)


def columns(out):
    """Return the lines of domains.csv."""
    with (out / "domains.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def stored(domains, out):
    """Return domains as a comparison has stored them."""
    return StoredPopulation.of(domains, out / "data", "domains")
