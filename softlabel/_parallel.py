"""Parallel work with progress and memory: joblib for workers and files, tqdm for the bar, Numba for loops in threads."""

import pickle
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numba
import numpy
from joblib.parallel import get_active_backend
from tqdm import tqdm

PART = 1 << 18  # elements of an array that are worth a thread
MOST_PARTS = 16  # of an array: a fixed number, so that sums over them do not depend on the number of cores

# Loops that threads run at the same time, compiled at the first call and kept on disk. Sums may be reordered, to run in vector
# registers; infinities and nan stay what they are. A loop contains those it calls (forceinline): linked to them, it would sum
# in another order in the process that compiled it than in those that find it on disk.
compiled = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}, forceinline=True)

# What a result depends on beside its arguments. The sources themselves, because they change more often than a version does,
# and read at import, because that is the code that will run.
VERSION = sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    + repr([version(library) for library in ("numba", "numpy", "scipy", "scikit-learn")]).encode()
).hexdigest()


def run(
    function: Callable[..., Any], tasks: Iterable[tuple], title: str, n_jobs: int = -1, memory: joblib.Memory | None = None
) -> list[Any]:
    """``[function(*task) for task in tasks]`` on ``n_jobs`` threads; a bar appears when the work takes over two seconds.

    Threads, because NumPy releases the lock where the time goes. ``joblib.parallel_config`` overrides the choice: its backend
    "loky" is processes, "dask" a cluster. A call that is itself a task of joblib or Dask works alone and without a bar.
    With a ``memory``, a result that is in its folder is not computed again.
    """
    tasks = list(tasks)
    if memory is not None:
        function = partial(recall, memory, function)
    alone = _is_task()
    if alone or joblib.effective_n_jobs(n_jobs) == 1 or len(tasks) == 1:
        results = (function(*task) for task in tasks)
    else:
        workers = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
        results = workers(joblib.delayed(_apply)(function, task) for task in tasks)
    return list(results if alone else tqdm(results, total=len(tasks), desc=title, delay=2, leave=False))


def over_parts(function: Callable[..., Any], *arrays: numpy.ndarray) -> list[Any]:
    """``function`` on parts of the rows of arrays of the same length, at the same time if they are large.

    Always in threads of this process, whatever ``joblib.parallel_config`` says: the work is shorter than the arrays' journey.
    """
    n_parts = min(MOST_PARTS, 1 + arrays[0].size // PART)
    if n_parts == 1:
        return [function(*arrays)]
    edges = numpy.linspace(0, len(arrays[0]), n_parts + 1).astype(int)
    parts = [[array[i:j] for array in arrays] for i, j in zip(edges[:-1], edges[1:])]
    if _is_task():
        return [function(*part) for part in parts]
    with ThreadPoolExecutor(joblib.cpu_count()) as threads:  # starts in a hundredth of the time of joblib's
        return list(threads.map(lambda part: function(*part), parts))


def _apply(function: Callable[..., Any], task: tuple) -> Any:
    """The task travels as one tuple: Dask places a large array on one worker, and when that dies, all who need it fail."""
    return function(*task)


def _is_task() -> bool:
    """Whether this code runs inside a worker of joblib or of Dask."""
    if get_active_backend()[0].nesting_level:
        return True
    if sys.modules.get("distributed") is None:  # an optional extra
        return False
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True


def as_memory(memory: joblib.Memory | str | Path | None) -> joblib.Memory | None:
    """A joblib.Memory for a folder; its path is made absolute, because workers may have another working directory."""
    if isinstance(memory, str | Path):
        return joblib.Memory(str(Path(memory).absolute()), verbose=0)
    if memory is not None and not isinstance(memory, joblib.Memory):
        raise ValueError(f"memory must be the name of a folder, a joblib.Memory or None, got {memory!r}")
    return memory


def recall(memory: joblib.Memory, function: Callable[..., Any], *task: Any) -> Any:
    """``function(*task)``, from the memory if it is there and intact."""
    kept = memory.cache(_sealed)
    data, seal = kept(VERSION, function, task)
    if sha256(data).hexdigest() != seal:
        kept.warn("a damaged result is computed again")
        (data, seal), _ = kept.call(VERSION, function, task)
    return pickle.loads(data)


def _sealed(version: str, function: Callable[..., Any], task: tuple) -> tuple[bytes, str]:
    """What a memory keeps: the result as bytes, and a checksum, since a damaged file may well be readable."""
    data = pickle.dumps(function(*task))
    return data, sha256(data).hexdigest()
