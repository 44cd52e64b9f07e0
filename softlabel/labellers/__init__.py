"""Who votes how: annotators beside each other, and faults that show in their votes."""

from softlabel.labellers.comparison import compare_annotators, dawid_skene
from softlabel.labellers.findings import Finding, LabellerFindings, examine_labellers

__all__ = ["Finding", "LabellerFindings", "compare_annotators", "dawid_skene", "examine_labellers"]
