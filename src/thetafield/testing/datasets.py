"""The conformance suite of datasets."""

import inspect

import torch

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS
from thetafield.options import checked, schema
from thetafield.predictors.base import PREDICTORS


def check_dataset(name: str) -> None:
    """Assert what every dataset owes: a description, clean domains, unseen test domains, the same bits again."""
    build = DATASETS[name]
    documentation = inspect.getdoc(build) or ""
    for key in schema(build):
        assert f"{key}:" in documentation, f"{name}: option {key} is not described in the docstring"
    options = checked(build, {}, name)
    data, again = build(0, **options), build(0, **options)
    assert data.name == name and data.test
    seen = set(data.train.ids.tolist())
    for part in (data.train, *data.test.values()):
        check_domains(part)
        assert part.descriptors == data.train.descriptors
    for group, part in data.test.items():
        assert not seen & set(part.ids.tolist()), f"{name}: group {group} holds training domains"
        assert _same(part, again.test[group])
    assert _same(data.train, again.train), f"{name}: same seed, other bits"
    predictor = PREDICTORS[data.predictor](
        tuple(data.train.x.shape[1:]), data.train.num_outputs, **data.predictor_options
    )
    batch = data.train.draw(torch.arange(2), 3, torch.Generator().manual_seed(0))
    outputs = predictor(predictor.start.expand(2, -1), batch.x)
    assert outputs.shape == (2, 3, data.train.num_outputs)


def check_domains(domains: DomainSet) -> None:
    """Assert that flat storage, offsets, names and values agree."""
    assert domains.offsets[0] == 0 and domains.offsets[-1] == len(domains.x) == len(domains.y)
    assert bool((domains.sizes > 0).all()), "a domain has no sample"
    assert domains.z.shape == (len(domains), len(domains.descriptors)) and len(domains.factors) == domains.z.shape[1]
    assert len(set(domains.ids.tolist())) == len(domains), "two domains share an id"
    assert torch.isfinite(domains.z).all()
    assert not domains.x.is_floating_point() or torch.isfinite(domains.x).all()
    if domains.classes is not None:
        assert domains.y.dtype == torch.int64 and int(domains.y.max()) < len(domains.classes)


def _same(first: DomainSet, second: DomainSet) -> bool:
    return all(torch.equal(getattr(first, part), getattr(second, part)) for part in ("x", "y", "z", "offsets"))
