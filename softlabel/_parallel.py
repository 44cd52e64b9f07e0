"""Parallel work with progress, in one place: joblib for the workers, tqdm for the bar."""

from collections.abc import Callable, Iterable
from typing import Any

from joblib import Parallel, delayed
from tqdm import tqdm


def run(function: Callable[..., Any], tasks: Iterable[tuple], title: str, n_jobs: int = -1) -> list[Any]:
    """``[function(*task) for task in tasks]`` on ``n_jobs`` threads; a bar appears when the work takes over two seconds.

    Threads, because NumPy releases the lock where the time goes. ``joblib.parallel_config`` overrides the choice.
    """
    tasks = list(tasks)
    results = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(delayed(function)(*t) for t in tasks)
    return list(tqdm(results, total=len(tasks), desc=title, delay=2, leave=False))
