"""What is measured, a family a file; the page has them in this order."""

from benchmarks.workload import Workload
from benchmarks.workloads import (
    attention,
    decoding,
    imports,
    modules,
    numpy_attention,
    training,
)

FAMILIES = (attention, modules, training, decoding, numpy_attention, imports)


def all_workloads() -> list[Workload]:
    """Return every workload; none of them has built anything yet."""
    return [each for family in FAMILIES for each in family.workloads()]
