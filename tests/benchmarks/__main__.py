"""Run the benchmark: `python tests/benchmarks --help`, or `make bench`.

It prints a line for each workload while it runs, and writes all of it to --out. Other
programs that run meanwhile disturb it: ratios far less than times.
"""

import argparse
import os
import sys
import time
from pathlib import Path

if not __package__:  # `python tests/benchmarks`, where nothing put tests/ on the path
    sys.path[0] = str(Path(__file__).parents[1])
    sys.path.insert(1, str(Path(__file__).parents[2]))


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few workloads, quickly")
    parser.add_argument(
        "--only", nargs="+", metavar="WORD", help="those whose names hold all the words"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="to time each for, about")
    parser.add_argument("--minutes", type=float, help="no workload begins later")
    parser.add_argument("--out", type=Path, default=Path("runs/speed.json"))
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for; return 1 if outputs did not agree."""
    options = options_of(arguments)
    for library in ("OMP", "OPENBLAS", "MKL"):  # NumPy reads them as it is imported
        os.environ[f"{library}_NUM_THREADS"] = str(options.threads)
    import torch

    from benchmarks.report import about, line, row, save
    from benchmarks.workloads import all_workloads

    torch.set_num_threads(options.threads)
    chosen = [
        each
        for each in all_workloads()
        if each.device in ("", options.device)
        and (not options.short or each.short)
        and all(word in each.key for word in options.only or [])
    ]
    seconds = options.seconds or (0.5 if options.short else 3.0)
    given = sys.argv[1:] if arguments is None else arguments
    report = {
        **about(given, options.short, options.device),
        "processor_minutes": 0.0,
        "rows": [],
    }
    began, started = time.process_time(), time.monotonic()
    for each in chosen:
        if options.minutes and time.monotonic() - started > 60 * options.minutes:
            break
        report["rows"].append(row(each, seconds, options.device))
        minutes = report["processor_minutes"] = (time.process_time() - began) / 60
        print(f"{minutes:5.1f}  {line(report['rows'][-1])}", flush=True)
        save(options.out, report)
    ran = [x for found in report["rows"] for x in found["contenders"].values()]
    return int(any("disagrees" in x for x in ran))


if __name__ == "__main__":
    sys.exit(main())
