"""The book's exercises: what is asked for, what is right, and what went wrong."""

from softlabel.book.exercises.marking import Feedback, find, keys, mark

__all__ = ["Feedback", "find", "keys", "mark"]
