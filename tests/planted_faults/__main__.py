"""Plant one-character faults in the arithmetic of the package, and see who finds them.

    python tests/planted_faults [--count 48] [--seed 0] [--only pages] [--list]

First all pages run once, must pass, and tell which of them run which line. Each fault
then changes one operator or one number in a copy of the project; there the pages that
run its line are run until one fails. The same is done with the tests, for the faults
that no page found. It prints who found which fault by which test. A fault that nobody
can find, as it changes no result, stands in `NO_FAULTS` with the reason.
`--jobs` plants so many side by side; machines can share the work by `--seed`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from coverage import CoverageData

from faults import ROOT, Fault, chosen_faults

WHO = {"pages": ("docs", "README.md"), "tests": ("tests",)}
# Of the package's models these compute little, or only with a browser.
LEFT_OUT = ("site", "live", "engine", "benchmarks", "baselines")


def measured(targets: tuple[str, ...], jobs: int) -> CoverageData:
    """Run pages or tests without a fault, and note which of them runs which line.

    Raises:
        RuntimeError: one fails: then a failure would say nothing about a fault.
    """
    options = ["-n", str(jobs), "--dist", "loadfile", "-p", "no:tformer"]
    options += ["--cov=tformer", "--cov-config=/dev/null", "--cov-report="]
    options += ["--cov-context=test", *(f"--ignore=tests/{name}" for name in LEFT_OUT)]
    with tempfile.TemporaryDirectory() as folder:
        file, copy = str(Path(folder, "coverage")), copied(Path(folder, "project"))
        done = _pytest(copy, [*options, *targets], COVERAGE_FILE=file)
        if done.returncode:
            raise RuntimeError(f"without a fault: {done.stdout.decode()[-2000:]}")
        data, kept = CoverageData(basename=file), CoverageData(no_disk=True)
        data.read()
        kept.update(data, map_path=lambda path: os.path.relpath(path, copy))
    return kept


def copied(folder: Path) -> Path:
    """Copy the project, without what was made from it, into a new folder."""
    made = {".git", ".venv", ".cache", "site", "runs"}

    def left_out(here: str, names: list[str]) -> set[str]:
        return {"__pycache__", *(made if Path(here) == ROOT else ())} & {*names}

    return Path(shutil.copytree(ROOT, folder, ignore=left_out, symlinks=True))


def found_by(fault: Fault, data: CoverageData) -> str:
    """Run what runs the line of a fault; return the name of what fails, or ""."""
    by_line = data.contexts_by_lineno(fault.file)
    all_lines = {context for contexts in by_line.values() for context in contexts}
    # A line that runs at the import belongs to no test: who uses the file may see it.
    those = set(by_line.get(fault.line, ())) - {""} or all_lines - {""}
    # Nor is a line seen that a compiler runs: what is named like the file is run too.
    stem = Path(fault.file).stem
    those |= {context for context in all_lines if stem in context.partition("::")[0]}
    files = sorted({context.partition("::")[0] for context in those} - {""})
    files.sort(key=lambda file: stem not in file)
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder, "project"))
        path = copy / fault.file
        lines = path.read_text("utf-8").split("\n")
        assert lines[fault.line - 1] == fault.before
        lines[fault.line - 1] = fault.after
        path.write_text("\n".join(lines), "utf-8")
        return _first_failure(copy, files)


def _first_failure(copy: Path, targets: list[str]) -> str:
    """Run pytest on some files at a time until a test fails; return its name, or ""."""
    for start in range(0, len(targets), 4):
        some = targets[start : start + 4]
        try:
            done = _pytest(copy, ["-x", *some])
        except subprocess.TimeoutExpired:  # that is seen too
            return f"a hang in one of {' '.join(some)}"
        if done.returncode in (1, 2):  # a test failed, or could not be read
            return done.stdout.decode().rstrip().split("\n")[-3][:150]
        if done.returncode not in (0, 5):  # and not that there is none
            raise RuntimeError(f"pytest itself failed: {done.stdout.decode()[-500:]}")
    return ""


def _pytest(
    folder: Path, arguments: list[str], **more: str
) -> subprocess.CompletedProcess[bytes]:
    environment = {
        "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "docs")]),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=line"]
    command += ["-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment, **more},
        capture_output=True,
        timeout=600 if "-x" in arguments else None,
    )


def main() -> int:
    """Print a line for each fault, and how many were found; 1 if one was not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=48)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=["", *WHO], default="")
    parser.add_argument("--list", action="store_true", help="show the faults alone")
    o = parser.parse_args()
    faults = chosen_faults(o.count, o.seed)
    if o.list:
        print("\n".join(map(str, faults)))
        return 0
    counts: Counter[str] = Counter()
    for who, targets in WHO.items():
        if not faults or o.only not in ("", who):
            continue
        data = measured(targets, o.jobs)
        with ThreadPoolExecutor(o.jobs) as pool:
            asked = {pool.submit(found_by, fault, data): fault for fault in faults}
            for done in as_completed(asked):
                if test := done.result():
                    fault = asked[done]
                    faults.remove(fault)
                    counts[who] += 1
                    print(f"{who:7} {fault}  {test}", flush=True)
    for fault in faults:
        print(f"nobody  {fault}")
    print(
        f"{counts.total() + len(faults)} faults: {dict(counts)}, nobody {len(faults)}"
    )
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
