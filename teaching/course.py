"""Release the assignments with nbgrader, and grade what comes back.

    python teaching/course.py release [COURSE]   student versions in COURSE/release (_build/course)
    python teaching/course.py grade FOLDER       grades.csv and feedback in FOLDER-graded

FOLDER has one folder a student, named after the student, with the notebooks in it at any depth; or the notebooks themselves,
if the name of the student stands before the first `_`, as in a download from Canvas. Of what Moodle calls a folder the name
counts. The graded folder is a course of nbgrader: answers in words are graded there, and `grade` again then counts them.
"""

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import sandbox
import sheets
from nbgrader.utils import parse_utc
from sheets import SOURCES, id_of

HERE = Path(__file__).resolve().parent

# nbgrader calls alembic, for its database, by name.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
MOODLE = re.compile(r"_\d+_assignsubmission_\w+$")
GIVEN = "a cell that was given failed: look at the sheet"
CONFIG = """import sys

sys.path.insert(0, {here!r})
c = get_config()
c.CourseDirectory.course_id = "harmless-label-noise"
c.ClearSolutions.code_stub = {{"python": {stub!r}}}
# The sheet runs in a sandbox, the tests outside of it (judge.py).
c.Autograde.autograde_preprocessors = [
    "judge.Judge", *("nbgrader.preprocessors." + name for name in ("LimitOutput", "SaveAutoGrades", "CheckCellMetadata"))]
c.Judge.variants = {variants}
c.Judge.timeout = {timeout}
# What students get back holds no hidden tests.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades", "nbgrader.preprocessors.ClearHiddenTests",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor"]
"""


def nbgrader(course, *arguments):
    """Run an nbgrader command in a course; what it said, if it failed."""
    done = subprocess.run([sys.executable, "-m", "nbgrader", *arguments], cwd=course, text=True, capture_output=True)
    return done.stderr if done.returncode else ""


def write(nb, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(nb), encoding="utf8")


def release(course, students=(), timeout=60):
    """Make a course with the student versions in its folder `release`, and each student's own in `sheets` and `solutions`."""
    course.mkdir(parents=True, exist_ok=True)
    config = CONFIG.format(here=str(HERE), stub=sheets.STUB, variants=bool(students), timeout=timeout)
    (course / "nbgrader_config.py").write_text(config, encoding="utf8")
    for name in SOURCES:
        source, released = (course / part / name / f"{name}.ipynb" for part in ("source", "release"))
        text = nbformat.writes(sheets.notebook(name))
        if not released.exists() or source.read_text("utf8") != text:
            write(sheets.notebook(name), source)
            if problem := nbgrader(course, "generate_assignment", name, "--force"):
                sys.exit(f"{name} could not be released:\n{problem}")
        for student in students:
            write(sheets.released(name, student), course / "sheets" / student / f"{name}.ipynb")
            write(sheets.notebook(name, student), course / "solutions" / student / f"{name}.ipynb")


def handed_in(submissions, students):
    """For each student, the files handed in. Moodle puts more than the name into that of a folder, and Canvas of a file."""
    found = {student: [] for student in students}
    for path in sorted(submissions.rglob("*")):
        inside = path.relative_to(submissions)
        if path.is_dir() or path.is_symlink() or any(part.startswith(".") for part in inside.parts):
            if path.is_dir() and len(inside.parts) == 1 and not inside.name.startswith("."):
                found.setdefault(MOODLE.sub("", inside.name), [])
            continue
        student = MOODLE.sub("", inside.parts[0]) if len(inside.parts) > 1 else inside.stem.partition("_")[0]
        found.setdefault(student, []).append(path)
    return found


def time_of(path):
    """When a notebook was handed in: at the time of its file, or at that which nbgrader's exchange noted, if it is later."""
    noted = path.with_name("timestamp.txt")
    time = path.stat().st_mtime
    return max(time, parse_utc(noted.read_text().strip()).replace(tzinfo=UTC).timestamp()) if noted.exists() else time


def collect(files, student, course, due=None, variants=False):
    """Put a student's notebooks where nbgrader looks for them; for each assignment what is to be said of it."""
    shutil.rmtree(course / "submitted" / student, ignore_errors=True)
    notes = {name: [] for name in SOURCES}
    known = [(*sheets.recognise(path), path) for path in files if path.suffix == ".ipynb"]
    for name in SOURCES:
        own = sorted((time_of(path), str(path), nb, path) for named, nb, path in known if named == name)
        unread = [path.name for named, _, path in known if named is None and name in path.name]
        if not own:
            notes[name].append(f"not a notebook of this sheet: {', '.join(unread)}" if unread else "not handed in")
            continue
        *older, (time, _, nb, path) = own
        if older:
            notes[name].append(f"handed in {len(own)} times; this is the latest, {path.name}")
        elif path.name != f"{name}.ipynb":
            notes[name].append(f"handed in as {path.name}")
        if (whose := nb.metadata.get("student")) and whose != (student if variants else ""):
            notes[name].append(
                f"has the numbers of {whose}, is graded with those {f'of {student}' if variants else 'for all'}"
            )
        if due and time > due.timestamp():
            notes[name].append(f"late by {(time - due.timestamp()) / 3600:.1f} hours")
        write(sheets.restore(nb, name), course / "submitted" / student / name / f"{name}.ipynb")
    return notes


def gradebook(course):
    from nbgrader.api import Gradebook

    return Gradebook(f"sqlite:///{course}/gradebook.db")


def grades(course, student, name):
    """The submission of a student in an open gradebook, and its grades by cell; nothing if there is none."""
    submission = course.find_submission(name, student)
    return submission, {grade.name: grade for part in submission.notebooks for grade in part.grades}


def answers(course, student, name):
    """The text of each answer in words, as it was graded last."""
    path = course / "autograded" / student / name / f"{name}.ipynb"
    cells = nbformat.read(path, as_version=4).cells if path.exists() else []
    return {id_of(cell): cell.source for cell in cells if cell.metadata.get("nbgrader", {}).get("grade")}


def autograde(course, students, name, only=None):
    """Grade an assignment. Points that a person gave stay; they wait to be looked at if the answer has changed since."""
    before, waited = {student: answers(course, student, name) for student in students}, set()
    with gradebook(course) as book:
        for student in students:
            if before[student]:
                old = grades(book, student, name)[1]
                waited |= {(student, key) for key, grade in old.items() if grade.needs_manual_grade}
    one = ("--student", only) if only else ()
    problem = nbgrader(course, "autograde", name, "--force", *one) + nbgrader(
        course, "generate_feedback", name, "--force", *one
    )
    if problem:  # a sheet that cannot be graded is named in the table; the others are graded
        print(problem, file=sys.stderr)
    with gradebook(course) as book:
        for student in students:
            after = answers(course, student, name)
            for key, grade in grades(book, student, name)[1].items() if after else ():
                if grade.manual_score is not None:
                    grade.needs_manual_grade = (student, key) in waited or before[student].get(key) != after[key]
        book.db.commit()


def failed(course, student, name):
    """Whether a cell that was given failed in a sheet, be it the machine's fault or the student's."""
    nb = nbformat.read(course / "autograded" / student / name / f"{name}.ipynb", as_version=4)
    given = [cell for cell in nb.cells if (id_of(cell) or "").startswith("given-")]
    return any(output.output_type == "error" for cell in given for output in cell.outputs)


def row(book, course, student, name, notes):
    """One line of the table of grades."""
    line = {"student": student, "assignment": name, "score": "", "max_score": ""}
    if not (course / "submitted" / student / name).exists():
        return line | {"note": "; ".join(notes)}
    if not (course / "autograded" / student / name / f"{name}.ipynb").exists():
        return line | {"note": "; ".join([*notes, "could not be graded"])}
    if failed(course, student, name):
        notes = [*notes, GIVEN]
    submission, all_grades = grades(book, student, name)
    if too_many := [key for key, grade in all_grades.items() if not 0 <= grade.score <= grade.max_score]:
        return line | {"note": "; ".join([*notes, f"the gradebook has more points than there are: {', '.join(too_many)}"])}
    waiting = [grade for grade in all_grades.values() if grade.needs_manual_grade]
    if new := sum(grade.max_score for grade in waiting if grade.manual_score is None):
        notes = [*notes, f"{new:g} points to be given by a person"]
    if changed := [grade.name for grade in waiting if grade.manual_score is not None]:
        notes = [*notes, f"changed since marked: {', '.join(changed)}"]
    return line | {"score": f"{submission.score:g}", "max_score": f"{submission.max_score:g}", "note": "; ".join(notes)}


def grade(submissions, students=(), only=None, due=None, timeout=60):
    """Grade a folder of submissions, or one student's; the path of the table of grades."""
    course = submissions.with_name(f"{submissions.name}-graded")
    release(course, students, timeout)
    files = handed_in(submissions, students)
    if not files:
        sys.exit(f"{submissions} is empty: there must be a folder for each student")
    if only and only not in files:
        sys.exit(f"nothing of {only}; there is {', '.join(files)}")
    if seen := [place for place in sandbox.visible() if place.resolve() in course.parents]:
        sys.exit(f"{submissions} is inside of {seen[0]}, which every sheet may read: move it elsewhere")
    notes = {}
    for student in [only] if only else files:
        notes[student] = collect(files[student], student, course, due, bool(students))
        if students and student not in students:
            for said in notes[student].values():
                said.append("not on the list of students")
    for name in SOURCES:
        if handed := [student for student in notes if (course / "submitted" / student / name).exists()]:
            autograde(course, handed, name, only)
    return write_table(course, files, notes)


def write_table(course, students, notes):
    """Write what the gradebook of a course holds to `grades.csv`; the lines of students not graded now stay. Its path."""
    table = course / "grades.csv"
    old = {}
    if table.exists():
        with table.open(newline="", encoding="utf8") as file:
            old = {(line["student"], line["assignment"]): line for line in csv.DictReader(file)}
    with gradebook(course) as book, table.open("w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, ["student", "assignment", "score", "max_score", "note"])
        writer.writeheader()
        for student in students:
            for name in SOURCES:
                if student in notes:
                    writer.writerow(row(book, course, student, name, notes[student][name]))
                elif (student, name) in old:
                    writer.writerow(old[student, name])
    return table


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    releasing, grading = commands.add_parser("release"), commands.add_parser("grade")
    releasing.add_argument("course", type=Path, nargs="?", default=sheets.ROOT / "_build" / "course")
    grading.add_argument("submissions", type=Path)
    grading.add_argument("--student", help="grade this student alone")
    grading.add_argument("--due", type=lambda text: datetime.fromisoformat(text).astimezone(UTC), help="as 2030-05-31T18:00")
    grading.add_argument("--open", action="store_true", help="grade even where there is no sandbox")
    grading.add_argument("--timeout", type=int, default=60, help="seconds that a cell or a call may take")
    for command in (releasing, grading):
        command.add_argument("--students", type=Path, help="a file with a name a line: each gets numbers of their own")
    arguments = parser.parse_args(argv)
    students = arguments.students.read_text("utf8").split("\n") if arguments.students else []
    students = [name.strip() for name in students if name.strip()]
    if arguments.command == "release":
        release(arguments.course, students)
        for name in SOURCES:
            print(arguments.course / "release" / name / f"{name}.ipynb")
        return
    if not sandbox.confined() and not arguments.open:
        sys.exit(
            "Nothing on this machine would keep the students' code from your files and the network: bubblewrap is "
            f"{'there but may not make namespaces' if shutil.which('bwrap') else 'missing (apt-get install bubblewrap)'}. "
            "The page for lecturers says what to do, and what is not protected if you grade with OPEN=yes (--open)."
        )
    submissions = arguments.submissions.resolve()
    if not submissions.is_dir():
        sys.exit(f"{submissions} is no folder")
    table = grade(submissions, students, arguments.student, arguments.due, arguments.timeout)
    print(table.read_text("utf8"), end="")
    print(f"Table: {table}\nFeedback: {table.parent / 'feedback'}")


if __name__ == "__main__":
    main()
