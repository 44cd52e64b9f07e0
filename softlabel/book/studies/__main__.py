"""All studies, one after the other: ``python -m softlabel.book.studies``; with ``--confirm NAME ...`` some rows of these."""

import sys

from softlabel.book import studies

if __name__ == "__main__":
    if "--confirm" in sys.argv:
        for name in sys.argv[2:]:
            studies.confirm(name)
    else:
        for name in studies.NAMES:
            studies.run(name)
