"""What projects use, and the limits that hold it down.

`charges` changes usage, `sets` the limits; `recount` proves the books.
"""
