"""A small identity API for installations without Keystone.

It serves what clients of the share API send to Keystone: version discovery,
tokens for passwords with a service catalog, and the look-up of projects and
users. All users belong to the domain `default`, and each user to one project,
whose name is its id.
"""

PREFIX = '/identity'
_V3 = '/v3'


def serves(path: str) -> bool:
    """Return whether a path belongs to the identity API."""
    return path.startswith((PREFIX + '/', _V3 + '/')) or (path in (PREFIX, _V3))
