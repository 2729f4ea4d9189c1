"""The usage of projects, and the limits that restrict it.

`charges` changes usage, `sets` changes limits; `recount` verifies usage.
"""
