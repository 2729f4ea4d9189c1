#!/usr/bin/env python
"""Write the contracts of this release into manila_lite/rpc/previous.py.

A step of making a release: the record says what its processes understand,
for those of the next one.
"""

from collections.abc import Iterable, Mapping
import pathlib

from manila_lite import release
from manila_lite.rpc import contracts, previous

_HEAD = '''\
"""What processes of the previous release understand.

Written by tools/record_contracts.py when a release is made, and then not changed
until the next one: a method or an argument that is not here is new in this
release. The contracts keep all that is here, because the previous release still
sends it.
"""

# ruff: noqa: E501
from collections.abc import Mapping

RELEASE = {number}

KINDS: Mapping[str, frozenset[str]] = {{
    kind: frozenset(names.split())
    for kind, names in {{
'''
_TAIL = '''\
    }.items()
}
"""The names of the arguments of all methods, by kind of work or call."""
'''


def text(number: int, kinds: Mapping[str, Iterable[str]]) -> str:
    """Return the record of a release with these arguments of its methods."""
    rows = (
        f'        {kind!r}: {" ".join(sorted(names))!r},\n'
        for kind, names in sorted(kinds.items())
    )
    return _HEAD.format(number=number) + ''.join(rows) + _TAIL


if __name__ == '__main__':
    methods = [each for one in contracts.ALL for each in one.methods.values()]
    pathlib.Path(previous.__file__).write_text(
        text(release.NUMBER, {method.kind: method.args for method in methods})
    )
