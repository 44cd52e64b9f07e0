"""Work on parts of an array, on all cores, with answers that do not depend on their number."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

CACHE = 1 << 17  # numbers in an array that a core keeps at hand


def blocks(n: int, width: int, least: int = 1) -> list[slice]:
    """Rows of an array in even parts that a core's cache holds, whatever the machine; of half of ``least`` rows or more."""
    parts = -(-n // max(least, CACHE // max(width, 1)))
    size = -(-n // max(parts, 1))
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def in_threads(function: Callable[[Any], Any], parts: Sequence[Any]) -> Iterator[Any]:
    """``function`` of each part in order, on all cores, unless this is a worker's task already."""
    if len(parts) == 1 or inside_worker():
        yield from map(function, parts)
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with one_thread_of_algebra, ThreadPoolExecutor(cores) as threads:
        yield from threads.map(function, parts)


class _OneThreadOfAlgebra(ContextDecorator):
    """While anybody is in here, each call of linear algebra runs in the thread that makes it.

    More would stand in the way of threads over parts, and sum in an order that depends on their number.
    """

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.limit = _libraries().limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limit.restore_original_limits()


one_thread_of_algebra = _OneThreadOfAlgebra()


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def inside_worker() -> bool:
    """Whether this code runs in a worker of joblib or of Dask; where neither is imported, it does not."""
    joblib, distributed = sys.modules.get("joblib"), sys.modules.get("distributed")
    if joblib and joblib.parallel.get_active_backend()[0].nesting_level:
        return True
    try:
        return bool(distributed and distributed.get_worker())
    except ValueError:  # there is none here
        return False
