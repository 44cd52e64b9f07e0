"""Run a student's sheet for nbgrader: answers in the sandbox, tests outside of it.

The tests never enter the student's process. What they need of it, the value of a name or of a function for some arguments,
they ask for, and the replies are plain arrays. So a sheet can neither read the tests nor change what they import, call or say.
A cell or a call that never ends, or that ends Python, costs its own points: the sheet is then run again without that cell.
"""

import ast
import base64
import json
import re
import tempfile
import time
from pathlib import Path

import cloudpickle
import nbformat
import numpy as np
import pandas as pd
import sandbox
import sheets
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Integer

REPLY = Path(__file__).with_name("reply.py").read_text("utf8")
MOST_SAID = 50_000_000  # characters that a cell may say or reply
MOST_SHOWN = 20_000


class Refused(AssertionError):
    """An answer that cannot be tested; the message is for the student."""


class Kernel(NotebookClient):
    """A kernel to which nothing is believed but what a cell prints, shows and replies."""

    def process_message(self, message, cell, index):
        if message["msg_type"] in {"stream", "display_data", "execute_result", "error"}:
            cell.metadata["said"] = cell.metadata.get("said", 0) + len(str(message["content"]))
            if cell.metadata["said"] > MOST_SAID:
                return None
            message["content"].pop("transient", None)
        elif message["msg_type"] != "status":
            return None
        return super().process_message(message, cell, index)


class Student:
    """The sandbox in which a sheet runs; it can be asked for what the sheet defines."""

    def __init__(self, timeout):
        self.timeout, self.done, self.client = timeout, [], None
        self.end = time.monotonic() + 10 * timeout

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="sheet-")
        self.start()
        return self

    def __exit__(self, *_):
        self.client._cleanup_kernel()
        self.folder.cleanup()

    def start(self):
        argv = sandbox.command(self.folder.name)

        class One(KernelSpecManager):
            def get_kernel_spec(self, _):
                return KernelSpec(argv=argv, display_name="sheet", language="python")

        manager = AsyncKernelManager(kernel_spec_manager=One(), transport="ipc")
        manager.connection_file = str(Path(self.folder.name) / "kernel.json")
        self.client = Kernel(
            nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell()]), km=manager, timeout=self.timeout,
            interrupt_on_timeout=False, allow_errors=True, shutdown_kernel="immediate", startup_timeout=120,
        )  # fmt: skip
        self.client.start_new_kernel(env=sandbox.environment(self.folder.name), cwd=self.folder.name)
        self.client.start_new_kernel_client()
        self.execute("[__import__(name) for name in ('pandas', 'softlabel')] and None", 120)

    def execute(self, source, timeout=None):
        """Outputs of some code; a TimeoutError or a RuntimeError if it did not come to an end."""
        cell = nbformat.v4.new_code_cell(source)
        if time.monotonic() > self.end and not timeout:
            raise TimeoutError("came when the time for the whole sheet was over")
        self.client.timeout = timeout or self.timeout
        try:
            self.client.execute_cell(cell, 0)
        except CellTimeoutError:
            raise TimeoutError(f"did not end within {self.client.timeout} seconds") from None
        except Exception:  # the kernel has died, or says what no kernel says
            raise RuntimeError("ended Python, or used more memory or time than a sheet may") from None
        return cell.outputs

    def again(self):
        """Start anew, with all that ran to its end before."""
        self.client._cleanup_kernel()
        self.start()
        for cell in self.done if time.monotonic() < self.end else []:
            try:
                self.execute(*cell)
            except (TimeoutError, RuntimeError):
                self.done.remove(cell)
                self.again()
                return

    def run(self, source, timeout=None):
        """Outputs of a cell of the sheet."""
        try:
            outputs = self.execute(source, timeout)
            self.done.append((source, timeout))
            return [shown for shown in map(shorten, outputs) if shown]
        except (TimeoutError, RuntimeError) as error:
            self.again()
            return [failure(f"This cell {error}.")]

    def ask(self, name, arguments=None):
        """Value of a name of the sheet, or of a function for some arguments."""
        request = base64.b64encode(cloudpickle.dumps((name, arguments))).decode()
        called = "" if arguments is None else "()"
        try:
            outputs = self.execute(f"exec({REPLY!r}, {{'student': globals(), 'request': {request!r}}})")
        except (TimeoutError, RuntimeError) as error:
            self.again()
            raise Refused(f"{name}{called} {error}.") from None
        try:
            found = (
                output.data["application/x-answer"] for output in outputs if "application/x-answer" in output.get("data", {})
            )
            reply = json.loads(next(found))
            if "value" in reply:
                return unpacked(reply["value"])
        except Exception:
            raise Refused(f"{name}{called} gives nothing that can be read.") from None
        if "function" in reply:
            return lambda *args: self.ask(name, args)
        said = f"{name}{called} {str(reply.get('error'))[:300]}." if "error" in reply else f"The sheet defines no {name}."
        raise Refused(said)


def unpacked(value):
    """The array or table in a reply; nothing of the reply is run."""
    if "frame" in value:
        body, columns, index = value["frame"]
        return pd.DataFrame(unpacked(body), columns=columns, index=index)
    if not re.fullmatch(r"[<>|]?[biuf]\d{1,2}", value["type"]):
        raise ValueError(value["type"])
    return np.frombuffer(base64.b64decode(value["bytes"]), value["type"]).reshape(value["shape"])[()]


def failure(message):
    """What a failed cell shows."""
    return nbformat.v4.new_output("error", ename="Failed", evalue=message, traceback=[message])


def shorten(output):
    """An output as a page of feedback may show it: text and pictures, not too long; or None."""
    if output.output_type == "stream":
        output.text = output.text[:MOST_SHOWN]
    elif output.output_type == "error":
        output.traceback = ["\n".join(map(str, output.traceback))[-MOST_SHOWN:]]
    else:
        text, picture = str(output.data.get("text/plain", "")), str(output.data.get("image/png", "")).strip()
        output.data = {"text/plain": text[:MOST_SHOWN]}
        if re.fullmatch(r"[A-Za-z0-9+/=\s]{1,2000000}", picture):
            output.data["image/png"] = picture
        output.metadata = {}
    return output


def plain(text):
    """Markdown without HTML and links, which could run something in the browser of whoever reads it."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text).replace("](", "] (").replace("]:", "] :")


def value_of(source, names):
    """Run a cell; the value of its last line, if that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "test", "exec"), names)
    return eval(compile(ast.Expression(last.value), "test", "eval"), names) if last else None


def asked(student, name):
    """Value of a name of the sheet; None if a test can do without it, as `?` behind the name says, and there is none."""
    try:
        return student.ask(name.removesuffix("?"))
    except Refused:
        if not name.endswith("?"):
            raise
        return None


def judge(source, names, student, wanted):
    """Outputs of a test, from which nbgrader reads the points."""
    try:
        points = value_of(source, names | {name.removesuffix("?"): asked(student, name) for name in wanted})
    except AssertionError as error:
        return [failure(str(error) or "This test failed.")]
    except Exception:  # the test could not do with the answer what it does with a right one
        return [failure("The answer is not of the kind that is asked for: look at its type and its shape.")]
    return [] if points is None else [nbformat.v4.new_output("execute_result", {"text/plain": f"{points:g}"})]


class Judge(NbGraderPreprocessor):
    """Runs a sheet in place of nbgrader's `Execute`."""

    timeout = Integer(60, help="Seconds that a cell or a call may take").tag(config=True)
    variants = Bool(False, help="Whether each student has numbers of their own").tag(config=True)

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        variant = sheets.notebook(about["assignment"], about["student"] if self.variants else "")
        own = {sheets.id_of(cell): cell for cell in variant.cells if sheets.id_of(cell)}
        printed = {cell.source for cell in variant.cells}
        names = {"__name__": "__main__"}  # so that functions are sent whole
        for cell in own.values():
            if sheets.id_of(cell).startswith("given-"):
                value_of(cell.source, names)
        with Student(self.timeout) as student:
            for cell in nb.cells:
                source = own.get(sheets.id_of(cell))
                if source and source.metadata.nbgrader["locked"]:
                    cell.source = source.source
                if cell.cell_type != "code":
                    cell.source = cell.source if cell.source in printed else plain(cell.source)
                    continue
                if source and source.metadata.nbgrader["grade"]:
                    answer = sheets.id_of(cell).removeprefix("test-")
                    wanted = own[answer].metadata.get("names", answer).split(", ")
                    cell.outputs = judge(cell.source, names, student, wanted)
                else:
                    # What was given is not the student's to make faster, on whatever machine.
                    given = source and source.metadata.nbgrader["locked"]
                    cell.outputs = student.run(cell.source, 10 * self.timeout if given else None)
        return nb, resources
