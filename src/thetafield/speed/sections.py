"""All that is measured, by name, in the order of the report."""

from collections.abc import Callable, Iterator

from thetafield.speed.exponential import exponential
from thetafield.speed.findings import Finding
from thetafield.speed.inference import inference
from thetafield.speed.memory import memory
from thetafield.speed.methods import methods
from thetafield.speed.paper import capture, epoch, training
from thetafield.speed.scaling import domains, parameters
from thetafield.speed.timing import Bench

SECTIONS: dict[str, Callable[[Bench], Iterator[Finding]]] = {
    "epoch": epoch,
    "exponential": exponential,
    "capture": capture,
    "training": training,
    "methods": methods,
    "inference": inference,
    "domains": domains,
    "parameters": parameters,
    "memory": memory,
}
