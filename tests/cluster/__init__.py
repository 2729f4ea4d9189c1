"""A cluster of many nodes on one machine: see doc/source/cluster.rst."""
