"""Contestants take turns, so that a ratio compares runs of the same minute on the same machine."""

import contextlib
import importlib
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np


class Contestant(NamedTuple):
    """Something to time; ``run`` returns the answer, or (answer, seconds) if it holds its own watch.

    ``units`` is what the time is divided by (such as the number of fits), ``pick`` cuts the answer to what is compared, and
    ``needs`` is the package or program without which there is nothing to measure.
    """

    run: Callable[[], Any]
    units: float = 1
    pick: Callable[[Any], Any] = lambda answer: answer
    needs: str = "softlabel"


def compare(
    case: str, unit: str, contestants: dict[str, Contestant], rounds: int, tolerance: float | None, warm_up: bool = True
) -> list[dict]:
    """Time each contestant once a round; return one row each.

    The first contestant is ours: ``ratio`` is a contestant's time divided by ours of the same round, ``difference`` the
    largest from our answer, relative where that exceeds 1. A contestant that has no answer (None) is not compared. A first
    round is not counted, since libraries load in it.

    Raises
    ------
    ArithmeticError
        If an answer differs from ours by more than ``tolerance``: then the two did not do the same work.
    """
    present = {name: c for name, c in contestants.items() if installed(c.needs)}
    seconds, difference, ours = {name: [] for name in present}, dict.fromkeys(present), None
    for turn in range(-warm_up, rounds):
        for name, c in present.items():
            start = time.perf_counter()
            answer = c.run()
            spent = time.perf_counter() - start
            answer, spent = answer if isinstance(answer, tuple) else (answer, spent)
            if turn >= 0:
                seconds[name].append(spent / c.units)
            if answer is None or tolerance is None:
                continue
            answer = np.asarray(c.pick(answer), float)
            ours = answer if name == next(iter(present)) else ours
            difference[name] = float(np.max(np.abs(answer - ours) / np.maximum(1, np.abs(ours))))
            if not difference[name] <= tolerance:
                raise ArithmeticError(f"{case}: {name} differs from ours by {difference[name]:.2g}, allowed are {tolerance:g}")
    base = next(iter(seconds.values()))
    return [
        {
            "case": case,
            "unit": unit,
            "tool": name,
            "seconds": seconds.get(name),
            "why": None if name in present else f"not measured: {c.needs} is not installed",
            "ratio": [s / b for s, b in zip(seconds[name], base)] if name in present else None,
            "difference": difference.get(name),
            "tolerance": tolerance,
            "goal": None,
        }
        for name, c in contestants.items()
    ]


def aim(
    rows: list[dict], tool: str, unit: str = "times ours", *, at_least: float | None = None, at_most: float | None = None,
    measured: float | None = None,
) -> None:  # fmt: skip
    """Set a goal beside the row of a tool. What is measured is, unless given, the median ratio, or for "s" the median time."""
    row = next(row for row in rows if row["tool"] == tool)
    if measured is None and row["seconds"]:
        measured = statistics.median(row["seconds" if unit == "s" else "ratio"])
    bound = f"at most {at_most:g}" if at_least is None else f"at least {at_least:g}"
    row["goal"] = {"bound": f"{bound} {unit}", "unit": unit, "measured": measured, "met": None}
    if measured is not None:
        row["goal"]["met"] = measured <= at_most if at_least is None else measured >= at_least


def installed(package_or_program: str) -> bool:
    return importlib.util.find_spec(package_or_program) is not None or shutil.which(package_or_program) is not None


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def subject(name: str, all_cores: bool, tiny: bool) -> list[dict]:
    """The rows of one module, on the cores that this process has."""
    rows = importlib.import_module(f"benchmarks.{name}").run(all_cores, tiny)
    return [{"subject": name, "cores": available_cores(), **row} for row in rows]


def fresh(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)`` in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args).result()


def new_interpreter(code: str) -> Any:
    """Run code in a Python that has loaded nothing. What it prints is (answer, seconds); else there is no answer."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, text=True, stdout=subprocess.PIPE)
    return tuple(json.loads(done.stdout)) if done.stdout else None


@contextlib.contextmanager
def on_one_core():
    """Processes started here have one core, and so one thread in whatever library they load."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
