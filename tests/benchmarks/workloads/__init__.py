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

FAMILIES = {
    "attention": attention.workloads,
    "modules": modules.workloads,
    "training": training.workloads,
    "decoding": decoding.workloads,
    "numpy": numpy_attention.workloads,
    "import": imports.workloads,
}


def all_workloads() -> list[Workload]:
    """Return every workload; none of them has built anything yet."""
    return [each for family in FAMILIES.values() for each in family()]
