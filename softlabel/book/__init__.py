"""What only the book's chapters import: the ledger of claims, the exercises, figures and their style."""
