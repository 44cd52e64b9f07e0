"""Run the benchmarks and print one table. A full run writes ``benchmarks/results.json``, which the book reads."""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import statistics
import subprocess
from pathlib import Path

from tabulate import tabulate

from benchmarks.harness import available_cores, fresh, on_one_core, subject

# Which are measured on one core as well. The last is not parallel, nor are its peers.
SUBJECTS = {"cold_start": True, "small_fits": True, "large_fit": True, "votes": False}
PACKAGES = ["numpy", "scipy", "pandas", "scikit-learn", "statsmodels", "jax", "glum", "crowd-kit", "softlabel"]


def machine():
    """The machine and what runs on it."""
    return {
        "cpu": processor(),
        "cores": available_cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": system(),
        "date": datetime.date.today().isoformat(),
        "versions": versions(),
    }


def processor():
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def system():
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {platform.machine()}"
    except OSError:
        return platform.platform()


def versions():
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    if shutil.which("Rscript"):
        code = "cat(as.character(getRversion()))"
        found["R"] = subprocess.run(["Rscript", "-e", code], text=True, capture_output=True).stdout or None
    return found


def middle(values, show):
    """Median, smallest and largest."""
    if not values:
        return ""
    return f"{show(statistics.median(values))} ({show(min(values))} to {show(max(values))})"


def seconds(value):
    size, unit = next((s, u) for s, u in ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")) if value >= s or s == 1e-9)
    return f"{value / size:.3g} {unit}"


def table(rows):
    shown = [
        {
            "": row["case"],
            "tool": row["tool"],
            "cores": row["cores"],
            "time (range)": f"{middle(row['seconds'], seconds)} per {row['unit']}" if row["seconds"] else row["why"],
            "relative to ours (range)": middle(row["ratio"], "{:.3g}".format),
            "largest difference": "" if row["difference"] is None else f"{row['difference']:.0e}",
            "peak memory / data": f"{row['memory']:.2f}" if row.get("memory") else "",
            **verdict(row["goal"]),
        }
        for row in rows
    ]
    return tabulate(shown, headers="keys", disable_numparse=True)


def verdict(goal):
    """What was aimed at, what was measured, and whether that is enough."""
    if goal is None:
        return {}
    measured = "not measured" if goal["measured"] is None else f"{goal['measured']:.3g}"
    return {"goal": goal["bound"], "measured": measured, "met": {True: "yes", False: "NO", None: ""}[goal["met"]]}


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="subject", help=f"{', '.join(SUBJECTS)}; all by default")
    parser.add_argument("--tiny", action="store_true", help="sizes at which the figures mean nothing: does it run?")
    parser.add_argument("--output", type=Path, help="where to write the results of a run that is not full")
    options = parser.parse_args()
    if unknown := set(options.subjects) - set(SUBJECTS):
        parser.error(f"no such subject: {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}")

    os.environ["TQDM_DISABLE"] = "1"
    rows = []
    for name in options.subjects or SUBJECTS:
        print(f"{name} ...", flush=True)
        if SUBJECTS[name] and available_cores() > 1 and hasattr(os, "sched_setaffinity"):
            with on_one_core():
                rows += fresh(subject, name, False, options.tiny)
        rows += fresh(subject, name, True, options.tiny)
    print(table(rows))
    full = not (options.subjects or options.tiny)
    if output := options.output or (Path(__file__).with_name("results.json") if full else None):
        results = {"machine": machine(), "tiny": options.tiny, "rows": rows}
        output.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf8")
        print(f"\n{output}")


if __name__ == "__main__":
    main()
