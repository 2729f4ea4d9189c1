"""One contract suite, for the drivers of this package and any other.

    pytest tests/drivers --driver some.package.SomeDriver \
           --driver-config back-end.conf --driver-section some_backend

runs it against a driver of your own, with the options of that section.
The shares and snapshots it makes are removed again.
"""
