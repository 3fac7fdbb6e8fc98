"""What the service counts, for Prometheus."""

from collections.abc import Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from thetafield.serving.memory import FieldMemory

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
ROWS = tuple(4**k for k in range(9))


class Metrics:
    """Requests, seconds, rows, and what the memory of θ(z) saves.

    Args:
        memory: That memory.
    """

    def __init__(self, memory: FieldMemory) -> None:
        disable_created_metrics()  # a second series for each, which nothing reads
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "thetafield_requests", "Requests by path and status.", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "thetafield_request_seconds", "From request to response.", ["path"], buckets=SECONDS, registry=self.registry
        )
        self.rows = Counter("thetafield_rows", "Rows that were answered.", registry=self.registry)
        self.batches = Histogram(
            "thetafield_batch_rows", "Rows answered in one call.", buckets=ROWS, registry=self.registry
        )
        self.registry.register(MemoryCollector(memory))

    def answered(self, rows: int) -> None:
        """Count the rows of one call."""
        self.rows.inc(rows)
        self.batches.observe(rows)

    def responded(self, path: str, status: int, seconds: float) -> None:
        """Count one request."""
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        return generate_latest(self.registry)


class MemoryCollector(Collector):
    """Reads what the memory of θ(z) counts itself."""

    def __init__(self, memory: FieldMemory) -> None:
        self.memory = memory

    def collect(self) -> Iterator[Metric]:
        """Yield hits, misses and size."""
        name = "thetafield_field_cache"
        yield CounterMetricFamily(f"{name}_hits", "Descriptors whose θ(z) was remembered.", self.memory.hits)
        yield CounterMetricFamily(f"{name}_misses", "Descriptors whose θ(z) had to be computed.", self.memory.misses)
        yield GaugeMetricFamily(f"{name}_size", "Descriptors remembered now.", len(self.memory))
