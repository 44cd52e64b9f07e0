"""``python -m softlabel report --help``."""

import sys

from softlabel.report.command import main

sys.exit(main())
