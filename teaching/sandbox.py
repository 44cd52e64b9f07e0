"""Start Python for one student's sheet, with as little around it as the machine allows.

On Linux with bubblewrap (the program `bwrap`) it sees the system's programs, Python, the package `softlabel`, its data files
and an empty folder in memory: nobody's home, no other sheet, no solutions, no gradebook, no network, no other process. All
that it started ends with it. Without bubblewrap it is an ordinary process with an environment of its own. Memory, computing
time and the size of files are limited either way. `book/teaching.md` says what is not protected.
"""

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

GB = 2**30
LIMITS = {"AS": 4 * GB, "CPU": 600, "FSIZE": GB // 10, "CORE": 0, "NOFILE": 512}  # bytes, seconds, bytes, bytes, files
PROCESSES = 100  # and threads, where they can be counted apart from the lecturer's own


def _package():
    """Folder of the package `softlabel`."""
    import softlabel

    return Path(softlabel.__file__).parent


def visible():
    """Folders that the sheet may read."""
    import pooch

    data = Path(os.environ.get("SOFTLABEL_DATA") or pooch.os_cache("softlabel"))
    system = [Path(part) for part in ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/etc/fonts")]
    python = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]}
    return [path for path in (*system, *python, _package(), data) if path.exists()]


@functools.cache
def confined():
    """Whether this machine keeps a sheet away from everything else."""
    program = shutil.which("bwrap")
    return bool(program) and not subprocess.run([*_walls(), sys.executable, "-c", ""], capture_output=True).returncode


def _walls(folder=None):
    """The command of bubblewrap; `folder` is where the kernel's sockets lie."""
    shown = [argument for path in visible() for argument in ("--ro-bind", str(path), str(path))]
    shown += ["--ro-bind", __file__, "/sheet/sandbox.py", "--chdir", "/tmp"]
    shown += ["--bind", str(folder), str(folder)] if folder else []
    alone = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    return ["bwrap", *alone, "--proc", "/proc", "--dev", "/dev", "--size", str(GB // 4), "--tmpfs", "/tmp", *shown]


def environment(folder):
    """All that the sheet's process knows of its surroundings."""
    home = "/tmp" if confined() else str(folder)
    kept = {name: os.environ[name] for name in ("SOFTLABEL_DATA", "LANG", "LC_ALL", "TZ") if name in os.environ}
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    own = {"PATH": "/usr/bin:/bin", "HOME": home, "TMPDIR": home, "IPYTHONDIR": f"{home}/ipython", "MPLCONFIGDIR": home}
    quiet = {"PYTHONDONTWRITEBYTECODE": "1", "TQDM_DISABLE": "1"}
    return kept | threads | own | quiet | {"PYTHONPATH": str(_package().parent)}


def command(folder):
    """What starts the kernel."""
    walls, script = (_walls(folder), "/sheet/sandbox.py") if confined() else ([], __file__)
    return [*walls, sys.executable, script, "confined" if walls else "open", "-f", "{connection_file}", "--log-level=40"]


def main():
    import resource

    limits = LIMITS
    if sys.argv.pop(1) == "confined":
        limits = LIMITS | {"NPROC": PROCESSES}
        os.environ["JPY_PARENT_PID"] = "1"  # behind the walls that is bubblewrap, which ends with the grader
    for name, most in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    sys.path.pop(0)  # this folder
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()


if __name__ == "__main__":
    main()
