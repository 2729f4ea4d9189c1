"""Access rules as lines of exports(5), which NFS servers read."""

from collections.abc import Sequence
import pathlib

from manila_lite.share.drivers.contract.values import AccessReply, AccessRuleForDriver
from manila_lite.share.drivers.nfs_clients import clients_of

_HEADER = '# Written by manila_lite. What is changed here will be lost.\n'
_QUOTED = frozenset(' \t\n#"\\')


def format_exports(
    directory: pathlib.Path,
    rules: Sequence[AccessRuleForDriver],
    options: str,
    *,
    read_only: bool = False,
) -> tuple[str | None, dict[str, AccessReply]]:
    """Return the text (None if no client has access) and the replies."""
    clients, replies = clients_of(rules, read_only)
    if not clients:
        return None, replies
    line = ' '.join(
        [
            _quoted(str(directory)),
            *(f'{client.network}({client.level},{options})' for client in clients),
        ]
    )
    return f'{_HEADER}{line}\n', replies


def _quoted(path: str) -> str:
    """Escape a path for exports(5)."""
    return ''.join(
        f'\\{ord(letter):03o}' if letter in _QUOTED else letter for letter in path
    )
