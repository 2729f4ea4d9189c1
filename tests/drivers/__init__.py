"""The contract suite for the drivers of this package and any other.

    pytest tests/drivers --driver some.package.SomeDriver \
           --driver-config back-end.conf --driver-section some_backend \
           --driver-peers some_other,and_a_third

runs it against a third-party driver with the options of that section.
Replicas are created on its peers; without peers those tests are skipped.
The suite deletes the shares and snapshots that it creates.
"""
