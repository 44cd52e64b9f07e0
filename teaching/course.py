"""Release the assignments with nbgrader, and grade what comes back.

    python teaching/course.py release [COURSE]   student versions in COURSE/release (_build/course)
    python teaching/course.py grade FOLDER       grades.csv and feedback in FOLDER-graded

FOLDER has one folder a student, named after the student, with the notebooks in
it at any depth. The graded folder is an ordinary nbgrader course: questions that
a person reads are graded there, and `grade` again then counts them.
"""

import argparse
import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat

ROOT = Path(__file__).resolve().parents[1]
# nbgrader calls alembic, for its database, by name.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
SOURCES = {path.stem: path for path in sorted((ROOT / "teaching" / "assignments").glob("*.md"))}
CONFIG = """c = get_config()
c.CourseDirectory.course_id = "harmless-label-noise"
# An endless loop costs the cell its points, not the student the sheet.
c.Execute.timeout = 120
c.Execute.interrupt_on_timeout = True
c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE\\nraise NotImplementedError"}
"""


def mark(cell):
    """Give a cell nbgrader's metadata.

    The source says `:answer: ID` for what a student writes, `:test: ID` and
    `:points: N` for what grades it, `:manual: ID` and `:points: N` for an
    answer that a person reads.
    """
    kind = next((k for k in ("answer", "test", "manual") if k in cell.metadata), None)
    if kind is None:
        return
    name = cell.metadata.pop(kind)
    cell.metadata["nbgrader"] = {
        "grade_id": f"test-{name}" if kind == "test" else name,
        "solution": kind != "test",
        "grade": kind != "answer",
        "locked": kind == "test",
        "task": False,
        "schema_version": 3,
    }
    if kind != "answer":
        cell.metadata["nbgrader"]["points"] = cell.metadata.pop("points")


def notebook(name):
    """The source of an assignment as a notebook for nbgrader."""
    nb = jupytext.read(SOURCES[name], fmt="md:myst")
    for number, cell in enumerate(nb.cells):
        mark(cell)
        cell["id"] = f"{name}-{number}"  # else every conversion makes up new ones
    nb.metadata.pop("jupytext", None)
    nb.nbformat, nb.nbformat_minor = 4, 5
    return nb


def nbgrader(course, *arguments):
    """Run an nbgrader command in a course; what it said, if it failed."""
    done = subprocess.run([sys.executable, "-m", "nbgrader", *arguments], cwd=course, text=True, capture_output=True)
    return done.stderr if done.returncode else ""


def release(course):
    """Make a course with the student versions in its folder `release`."""
    course.mkdir(parents=True, exist_ok=True)
    (course / "nbgrader_config.py").write_text(CONFIG, encoding="utf8")
    for name in SOURCES:
        source, released = (course / part / name / f"{name}.ipynb" for part in ("source", "release"))
        text = nbformat.writes(notebook(name))
        if released.exists() and source.read_text("utf8") == text:
            continue
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text, encoding="utf8")
        if problem := nbgrader(course, "generate_assignment", name, "--force"):
            sys.exit(f"{name} could not be released:\n{problem}")


def collect(submissions, course):
    """Copy what was handed in to where nbgrader looks for it; the students' names."""
    students = sorted(path.name for path in submissions.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not students:
        sys.exit(f"{submissions} has no folders: there must be one for each student")
    for student in students:
        for name in SOURCES:
            found = [path for path in (submissions / student).rglob(f"{name}.ipynb") if ".ipynb_checkpoints" not in path.parts]
            if len(found) > 1:
                sys.exit(f"{student} handed in {name}.ipynb twice: {', '.join(map(str, found))}")
            if found:
                target = course / "submitted" / student / name
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(found[0], target)
    return students


def row(gradebook, course, student, name):
    """One line of the table of grades."""
    empty = dict.fromkeys(("score", "max_score"), "")
    if not (course / "submitted" / student / name).exists():
        return {"student": student, "assignment": name, **empty, "note": "not handed in"}
    if not (course / "autograded" / student / name / f"{name}.ipynb").exists():
        return {"student": student, "assignment": name, **empty, "note": "could not be graded"}
    submission = gradebook.find_submission(name, student)
    grades = [grade for part in submission.notebooks for grade in part.grades]
    # Graded again, points that a person gave stay, but nbgrader asks to see them once more.
    waiting = sum(grade.max_score for grade in grades if grade.needs_manual_grade and grade.manual_score is None)
    return {
        "student": student,
        "assignment": name,
        "score": f"{submission.score:g}",
        "max_score": f"{submission.max_score:g}",
        "note": f"{waiting:g} points to be given by a person" if waiting else "",
    }


def grade(submissions):
    """Grade a folder of submissions; the path of the table of grades."""
    course = submissions.with_name(f"{submissions.name}-graded")
    release(course)
    students = collect(submissions, course)
    for name in SOURCES:
        if any((course / "submitted" / student / name).exists() for student in students):
            # A sheet that cannot be graded is named in the table; the others are graded.
            problem = nbgrader(course, "autograde", name, "--force")
            problem += nbgrader(course, "generate_feedback", name, "--force")
            if problem:
                print(problem, file=sys.stderr)
    return write_table(course, students)


def write_table(course, students):
    """Write what the gradebook of a course holds to `grades.csv`; its path."""
    from nbgrader.api import Gradebook

    table = course / "grades.csv"
    with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook, table.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["student", "assignment", "score", "max_score", "note"])
        writer.writeheader()
        writer.writerows(row(gradebook, course, student, name) for student in students for name in SOURCES)
    return table


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("release").add_argument("course", type=Path, nargs="?", default=ROOT / "_build" / "course")
    commands.add_parser("grade").add_argument("submissions", type=Path)
    arguments = parser.parse_args(argv)
    if arguments.command == "release":
        release(arguments.course)
        for name in SOURCES:
            print(arguments.course / "release" / name / f"{name}.ipynb")
        return
    submissions = arguments.submissions.resolve()
    if not submissions.is_dir():
        sys.exit(f"{submissions} is no folder")
    table = grade(submissions)
    print(table.read_text(), end="")
    print(f"Table: {table}\nFeedback: {table.parent / 'feedback'}")


if __name__ == "__main__":
    main()
