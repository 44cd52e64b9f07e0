"""Work on parts of an array, on all cores."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

CACHE = 1 << 16  # numbers in an array that a core keeps at hand


def blocks(n: int, width: int) -> list[slice]:
    """Rows of an array in parts that stay in a core's cache. They do not depend on the machine, nor do sums over them."""
    size = max(1, CACHE // width)
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def in_threads(function: Callable[[Any], Any], parts: Sequence[Any]) -> Iterator[Any]:
    """``function`` of each part in order, on all cores, unless this is a worker's task already."""
    if len(parts) == 1 or inside_worker():
        yield from map(function, parts)
    else:  # threads of linear algebra within these would stand in each other's way
        with _linear_algebra().limit(limits=1, user_api="blas"), ThreadPoolExecutor(os.cpu_count()) as threads:
            yield from threads.map(function, parts)


@cache
def _linear_algebra() -> ThreadpoolController:
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
