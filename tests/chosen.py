"""Small domains and trainings for tests of what is chosen inside `fit`."""

import numpy as np

from thetafield.data.domains import DomainSet
from thetafield.training.train import train_field

TINY = {"epochs": 3, "block": 6, "samples": 4, "base_steps": 5, "tune_steps": 5, "latent_dim": 4, "neighbours": 2}


def informed_domains(num_domains=16, noise=2, seed=0):
    """Domains whose boundary turns with the first of several coordinates."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(size=(num_domains, 1 + noise)).astype(np.float32)
    code = np.repeat(np.arange(num_domains), 40)
    x = rng.normal(size=(len(code), 2)).astype(np.float32)
    angle = 3 * z[code, 0]
    y = (x[:, 0] * np.cos(angle) + x[:, 1] * np.sin(angle) > 0).astype(int)
    return DomainSet.from_arrays(x, y, domain=code, z=z[code])


def quick_train(calls=None):
    def train(domains, *, options, report=None, recall=None):
        if calls is not None:
            calls.append(dict(options))
        return train_field(
            domains,
            "neurallio",
            seed=0,
            options=options,
            predictor_options={"hidden": (6,)},
            device="cpu",
            report=report,
            recall=recall,
        )

    return train
