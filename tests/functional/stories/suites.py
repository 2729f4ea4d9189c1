"""Suites of stories, of which a usual run tries a sample.

What a change breaks most often is told in the other stories, which every run
has: the service in one process, its clients, its page, its refusals. Those
below take most of the time, start many processes and resemble each other.
"""

from tests.support import sampling

clients = sampling.suite('stories of NFS and CIFS clients', 3)
failures = sampling.suite('stories of processes that are stopped or fail', 5)
alerts = sampling.suite('alerts that fire', 0)
operation = sampling.suite('stories of operators', 2)
several_backends = sampling.suite('stories of several back ends', 2)
described_clients = sampling.suite('clients of the description', 0)
dashboard = sampling.suite("OpenStack's dashboard", 0)
