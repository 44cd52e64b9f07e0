"""Studies on a cluster, studies cut off and taken up again, and studies inside the workers of somebody else.

Processes are really killed here, and the cluster is a real one of two processes.
"""

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

from softlabel import _parallel, experiments, simulate_breast_cancer, simulate_relative_efficiency

STUDY = dict(deltas=[1, 2], ms=[5], alphas=[1, np.inf], n=100, n_sims=250, rng=7)  # six blocks
SPLITS = dict(ms=[5], alphas=[1, 1000], n_splits=5, rng=7)


def results(folder):
    """The files of the finished results, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in Path(folder).rglob("output.pkl")}


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


# Tasks, at the top level because they travel to other processes.


def where(seconds):
    time.sleep(seconds)
    return os.getpid(), threading.get_ident()


def nested(seconds):
    """A parallel call inside a task: the threads it works on."""
    return os.getpid(), {thread for _, thread in _parallel.run(where, [(seconds,)] * 8, "nested", n_jobs=4)}


def vector(k):
    return np.arange(float(k)), np.ones((k, 2)), 0


# ------------------------------------------------------------------ the cluster


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL)
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def on_cluster(client):
    client.wait_for_workers(2, timeout=60)
    with joblib.parallel_config(backend="dask"):
        yield client


@pytest.mark.parametrize("study, arguments", [(simulate_relative_efficiency, STUDY), (simulate_breast_cancer, SPLITS)])
def test_cluster_gives_the_local_numbers(client, tmp_path, study, arguments):
    local = study(**arguments)
    with joblib.parallel_config(backend="dask"):
        pd.testing.assert_frame_equal(study(**arguments, memory=tmp_path), local, check_exact=True)
    assert results(tmp_path)
    # What the cluster stored is what this process looks for.
    stored = results(tmp_path)
    pd.testing.assert_frame_equal(study(**arguments, memory=tmp_path), local, check_exact=True)
    assert results(tmp_path) == stored


def test_the_cluster_does_the_work(on_cluster):
    """Otherwise the tests above would compare this process with itself."""
    processes = {process for process, _ in _parallel.run(where, [(0.3,)] * 8, "where")}
    assert processes == set(on_cluster.run(os.getpid).values()) and os.getpid() not in processes


def test_killed_workers_do_not_change_the_numbers(on_cluster, tmp_path):
    """Both die, since what only one of them holds is lost with it. The grid is long: long arrays travel differently."""
    study = dict(deltas=[1], ms=[5], alphas=np.geomspace(0.1, 1000, 130), n=100, n_sims=1200, rng=1)
    before = set(on_cluster.run(os.getpid).values())
    at_death = []

    def kill():
        wait_until(lambda: len(results(tmp_path)) >= 2)
        at_death.append(len(results(tmp_path)))
        for process in before:
            os.kill(process, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    frame = simulate_relative_efficiency(**study, memory=tmp_path)
    killer.join()
    assert at_death[0] < 12 == len(results(tmp_path))
    assert before.isdisjoint(on_cluster.run(os.getpid).values())
    pd.testing.assert_frame_equal(frame, simulate_relative_efficiency(**study, memory=tmp_path), check_exact=True)
    with joblib.parallel_config(backend="threading"):
        pd.testing.assert_frame_equal(frame, simulate_relative_efficiency(**study), check_exact=True)


@pytest.mark.parametrize("backend", ["threading", "dask"])
def test_the_bar_moves_while_the_work_goes_on(request, capsys, backend):
    if backend == "dask":
        request.getfixturevalue("client").wait_for_workers(2, timeout=60)
    with joblib.parallel_config(backend=backend):
        _parallel.run(where, [(0.25,)] * 24, "rounds", n_jobs=2)  # three seconds, and the bar comes after two
    seen = [int(k) for k in re.findall(r"rounds: .*?(\d+)/24", capsys.readouterr().err)]
    assert len(set(seen)) >= 3 and seen == sorted(seen) and seen[0] < 24


def test_a_cluster_leaves_nothing_behind(tmp_path):
    """No process, no word on stderr: warnings are errors there too."""
    pytest.importorskip("distributed")
    script = tmp_path / "script.py"
    script.write_text(
        "import joblib, psutil\n"
        "from distributed import Client, LocalCluster\n"
        "from softlabel import simulate_relative_efficiency\n"
        "if __name__ == '__main__':\n"
        "    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address='127.0.0.1:0') as c, Client(c):\n"
        "        with joblib.parallel_config(backend='dask'):\n"
        "            simulate_relative_efficiency([2], [5], [1], n=100, n_sims=200, rng=0)\n"
        "        children = psutil.Process().children(recursive=True)\n"
        # Python's own, which ends with the script.
        "        children = [c for c in children if 'resource_tracker' not in ' '.join(c.cmdline())]\n"
        "    gone, alive = psutil.wait_procs(children, timeout=10)\n"
        "    print(len(gone), len(alive))\n"
    )
    environment = os.environ | {"TQDM_DISABLE": "1"}
    command = [sys.executable, "-W", "error", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    # On a busy machine a worker may need more than four seconds to end. Dask logs that, and ends it.
    said = [line for line in done.stderr.splitlines() if "still alive after" not in line]
    assert said == [] and done.returncode == 0
    assert done.stdout == "2 0\n"


def test_without_the_extra():
    """The package works; who asks for Dask is told what is missing."""
    script = (
        "import sys; sys.modules['distributed'] = sys.modules['dask'] = None\n"
        "import joblib\n"
        "from softlabel import simulate_relative_efficiency\n"
        "print(len(simulate_relative_efficiency([2], [5], [1], n=100, n_sims=200, rng=0)))\n"
        "with joblib.parallel_config(backend='dask'): pass\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "1" and "dask is not installed" in done.stderr


# ------------------------------------------------------------------ inside another's workers


@pytest.mark.parametrize("backend", ["loky", "threading", "dask"])
def test_inside_a_worker_there_is_one_thread(request, capfd, backend):
    if backend == "dask":
        request.getfixturevalue("client").wait_for_workers(2, timeout=60)
    with joblib.parallel_config(backend=backend):
        found = joblib.Parallel(n_jobs=2)(joblib.delayed(nested)(0.1) for _ in range(4))
    assert all(len(threads) == 1 for _, threads in found)
    assert len({process for process, _ in found}) == (1 if backend == "threading" else 2)
    # The check can fail: outside a worker the same call takes several threads.
    assert len(nested(0.1)[1]) > 1


def test_inside_a_worker_there_is_no_bar(capfd):
    with joblib.parallel_config(backend="loky"):
        joblib.Parallel(n_jobs=2)(joblib.delayed(nested)(0.3) for _ in range(2))  # over two seconds each, after which a bar comes
    assert "nested" not in capfd.readouterr().err


def test_a_study_inside_a_worker_gives_the_same_numbers():
    frames = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(simulate_relative_efficiency)(**STUDY) for _ in range(2))
    for frame in frames:
        pd.testing.assert_frame_equal(frame, simulate_relative_efficiency(**STUDY), check_exact=True)


# ------------------------------------------------------------------ resuming


LONG = dict(deltas=[1, 2], ms=[5, 50], alphas=[1, 10, 100], n=500, n_sims=3000, rng=3)  # sixty blocks
START = "from numpy import inf\nfrom softlabel import *\nsimulate_relative_efficiency(**{arguments!r}, memory={folder!r})\n"


@pytest.fixture(scope="module")
def uninterrupted():
    return simulate_relative_efficiency(**LONG)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_killed_study_is_taken_up_where_it_was(tmp_path, backend, uninterrupted):
    script = f"import joblib\njoblib.parallel_config(backend={backend!r})\n"
    script += START.format(arguments=LONG, folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(results(tmp_path)) >= 4)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    wait_until(lambda: not process_group_lives(process.pid))
    finished = results(tmp_path)
    assert 4 <= len(finished) < 60

    frame = simulate_relative_efficiency(**LONG, memory=tmp_path)
    after = results(tmp_path)
    assert len(after) == 60 and finished.items() <= after.items()  # no finished block was written again
    pd.testing.assert_frame_equal(frame, uninterrupted, check_exact=True)


def process_group_lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_resumed_study_computes_only_what_is_missing(tmp_path, monkeypatch):
    sizes = []
    real = experiments.excess_errors
    monkeypatch.setattr(experiments, "excess_errors", lambda *task: sizes.append(task[1]) or real(*task))
    first = simulate_relative_efficiency(**STUDY, memory=tmp_path)
    assert sorted(sizes) == [50, 50, 100, 100, 100, 100]
    for path in list(results(tmp_path))[:2]:
        path.unlink()
    sizes.clear()
    pd.testing.assert_frame_equal(simulate_relative_efficiency(**STUDY, memory=tmp_path), first, check_exact=True)
    assert len(sizes) == 2


def test_process_killed_while_it_writes_leaves_no_half_written_result(tmp_path):
    """A process that kills itself in the middle of the third file."""
    script = (
        "import os, pickle, signal\n"
        "from joblib import _store_backends\n"
        "dump, count = _store_backends.numpy_pickle.dump, []\n"
        "def half(value, file, **options):\n"
        "    count.append(value)\n"
        "    if len(count) < 3:\n"
        "        return dump(value, file, **options)\n"
        "    file.write(pickle.dumps(value)[:200]); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "_store_backends.numpy_pickle.dump = half\n"
    ) + START.format(arguments=STUDY | {"n_jobs": 1}, folder=str(tmp_path))
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    finished = results(tmp_path)
    assert len(finished) == 2
    assert [path.stat().st_size for path in Path(tmp_path).rglob("output.pkl.*")] == [200]  # under another name
    frame = simulate_relative_efficiency(**STUDY, memory=tmp_path)
    assert finished.items() <= results(tmp_path).items() and len(results(tmp_path)) == 6
    pd.testing.assert_frame_equal(frame, simulate_relative_efficiency(**STUDY), check_exact=True)


@pytest.mark.parametrize("memory", [str, Path, lambda folder: joblib.Memory(folder, verbose=0)], ids=["str", "Path", "Memory"])
def test_kinds_of_memory(tmp_path, monkeypatch, memory):
    monkeypatch.chdir(tmp_path)
    assert Path(_parallel.as_memory(memory("folder")).location).is_absolute() or memory not in (str, Path)
    simulate_relative_efficiency(**STUDY, memory=memory("folder"))
    assert len(results(tmp_path / "folder")) == 6


def test_a_generator_is_known_again_by_its_seed(tmp_path):
    first = simulate_relative_efficiency(**STUDY | {"rng": np.random.default_rng(7)}, memory=tmp_path)
    stored = results(tmp_path)
    again = simulate_relative_efficiency(**STUDY, memory=tmp_path)
    assert results(tmp_path) == stored
    pd.testing.assert_frame_equal(first, again, check_exact=True)
    # One generator used twice spawns other seeds: another study.
    rng = np.random.default_rng(7)
    one, two = (simulate_relative_efficiency(**STUDY | {"rng": rng}, memory=tmp_path) for _ in range(2))
    pd.testing.assert_frame_equal(one, first, check_exact=True)
    assert not np.isclose(one["re"], two["re"]).any()


def test_memory_needs_a_seed(tmp_path):
    with pytest.raises(ValueError, match="memory needs an rng"):
        simulate_relative_efficiency([2], [5], [1], n_sims=2, memory=tmp_path)
    with pytest.raises(ValueError, match="memory needs an rng"):
        simulate_breast_cancer([5], [1], n_splits=2, memory=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_memory_of_a_wrong_kind():
    with pytest.raises(ValueError, match="memory must be the name of a folder, a joblib.Memory or None, got 3"):
        simulate_relative_efficiency([2], [5], [1], n_sims=2, rng=0, memory=3)


# ------------------------------------------------------------------ studies do not mix


OTHERS = [{"deltas": [1, 2.0001]}, {"ms": [6]}, {"alphas": [1, 1e9]}, {"n": 101}, {"p": 3}, {"n_sims": 260}, {"rng": 8}]


def test_configurations_share_a_folder_and_never_mix(tmp_path):
    simulate_relative_efficiency(**STUDY, memory=tmp_path)
    for change in OTHERS:
        arguments = STUDY | change
        stored = results(tmp_path)
        mixed = simulate_relative_efficiency(**arguments, memory=tmp_path)
        assert len(results(tmp_path)) > len(stored), change
        pd.testing.assert_frame_equal(mixed, simulate_relative_efficiency(**arguments), check_exact=True, obj=str(change))


@pytest.mark.parametrize("change", [{"ms": [6]}, {"alphas": [1, 100]}, {"n_train": 60}, {"rng": 8}, {"method": "ridge"},
                                    {"method": "firth"}])
def test_splits_share_a_folder_and_never_mix(tmp_path, change):
    simulate_breast_cancer(**SPLITS, memory=tmp_path)
    simulate_relative_efficiency(**STUDY, memory=tmp_path)
    mixed = simulate_breast_cancer(**SPLITS | change, memory=tmp_path)
    assert len(results(tmp_path)) == 5 + 6 + 5
    pd.testing.assert_frame_equal(mixed, simulate_breast_cancer(**SPLITS | change), check_exact=True)


def test_more_training_sets_of_one_delta_are_added_to_those_stored(tmp_path):
    few = STUDY | {"deltas": [2], "n_sims": 200}
    simulate_relative_efficiency(**few, memory=tmp_path)
    more = simulate_relative_efficiency(**few | {"n_sims": 300}, memory=tmp_path)
    assert len(results(tmp_path)) == 3
    pd.testing.assert_frame_equal(more, simulate_relative_efficiency(**few | {"n_sims": 300}), check_exact=True)


def test_another_version_computes_anew(tmp_path, monkeypatch):
    simulate_relative_efficiency(**STUDY, memory=tmp_path)
    monkeypatch.setattr(_parallel, "VERSION", "another")
    simulate_relative_efficiency(**STUDY, memory=tmp_path)
    assert len(results(tmp_path)) == 12


def test_version_is_that_of_the_sources(tmp_path):
    """A copy of the package is the same version; with one byte more in a module it is another."""
    package = Path(_parallel.__file__).parent
    copy = tmp_path / "softlabel"
    copy.mkdir()
    for path in package.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    code = "import softlabel._parallel as p; print(p.__file__, p.VERSION)"

    def version():
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        where, version = done.stdout.split()
        assert Path(where).parent == copy
        return version

    assert version() == _parallel.VERSION
    (copy / "_newton.py").write_bytes((copy / "_newton.py").read_bytes() + b"\n")
    assert version() != _parallel.VERSION


# ------------------------------------------------------------------ damaged files


@pytest.fixture
def quiet():
    """joblib logs, with a traceback, what it could not read."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_no_damage_gives_a_wrong_number(tmp_path, quiet):
    """Any one byte altered, and any part cut off."""
    memory = _parallel.as_memory(tmp_path)
    good = _parallel.recall(memory, vector, 5)
    (path,) = results(tmp_path)
    intact = path.read_bytes()
    damaged = [intact[:k] + bytes([intact[k] ^ 4]) + intact[k + 1:] for k in range(len(intact))]
    damaged += [intact[:k] for k in range(0, len(intact), 7)]
    for content in damaged:
        path.write_bytes(content)
        for part, expected in zip(_parallel.recall(memory, vector, 5), good, strict=True):
            np.testing.assert_array_equal(part, expected)


def test_a_damaged_number_is_seen_and_replaced(tmp_path, caplog):
    """Damage inside a number is readable: only the checksum tells. Here 1.0 becomes 1.5."""
    memory = _parallel.as_memory(tmp_path)
    good = _parallel.recall(memory, vector, 5)
    (path,) = results(tmp_path)
    intact = path.read_bytes()
    one, altered = (np.full(3, x).tobytes() for x in (1.0, 1.5))
    assert one in intact
    path.write_bytes(intact.replace(one, altered, 1))
    data, _ = joblib.load(path)
    assert b"\xf8?" in data  # it loads, with 1.5 in it
    np.testing.assert_array_equal(_parallel.recall(memory, vector, 5)[1], good[1])
    assert "damaged" in caplog.text
    assert path.read_bytes() == intact


def test_study_with_damaged_files(tmp_path, quiet):
    first = simulate_relative_efficiency(**STUDY, memory=tmp_path)
    for k, path in enumerate(results(tmp_path)):
        content = path.read_bytes()
        path.write_bytes(content[: 300 * k] + bytes(8) + content[300 * k + 8:] if k % 2 else content[: 200 * k])
    pd.testing.assert_frame_equal(simulate_relative_efficiency(**STUDY, memory=tmp_path), first, check_exact=True)
