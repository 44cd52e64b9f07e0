"""All studies, one after the other: ``python -m softlabel.book.studies``."""

from softlabel.book import studies

if __name__ == "__main__":
    for name in studies.NAMES:
        studies.run(name)
