"""One contract suite, for the drivers of this package and any other.

    pytest tests/drivers --driver some.package.SomeDriver \
           --driver-config back-end.conf --driver-section some_backend \
           --driver-peers some_other,and_a_third

runs it against a driver of your own, with the options of that section.
Its peers are where replicas are made; without any there are no such tests.
The shares and snapshots it makes are removed again.
"""
