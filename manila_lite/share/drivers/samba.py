"""Access rules as a section of smb.conf(5), which Samba includes."""

from collections.abc import Collection, Sequence
import pathlib
import re

from manila_lite.share.drivers.contract.values import AccessReply, AccessRuleForDriver

_HEADER = '# Written by manila_lite. What is changed here will be lost.\n'
# Samba substitutes a percent sign and a letter, for example with the name
# of the client, and has no way to escape a percent sign.
_USER = re.compile(r'(?! )[^%"\\,;\x00-\x1f\x7f]+(?<! )')
_PATH = re.compile(r'/[^%\x00-\x1f\x7f]*(?<![ \\])')


def format_section(
    name: str,
    directory: pathlib.Path,
    rules: Sequence[AccessRuleForDriver],
    *,
    read_only: bool = False,
    users: Collection[str] | None = None,
    as_root: bool = False,
) -> tuple[str | None, dict[str, AccessReply]]:
    """Return the text (None if no client has access) and the replies.

    Samba can require user and address but not accept either of them, as
    rules do: rules of other types than `user` fail. A name that begins with
    @ is a group. If `users` are given, rules of others fail. `as_root` gives
    every user with access all permissions on the files of the share.
    """
    known, replies = [], {}
    for rule in rules:
        refusal = _refusal(rule, directory, users)
        if refusal is None:
            known.append(rule)
            replies[rule['access_id']] = AccessReply(state='active')
        else:
            replies[rule['access_id']] = AccessReply(state='error', reason=refusal)
    if not known:
        return None, replies
    writers = [rule for rule in known if rule['access_level'] == 'rw' and not read_only]
    lines = [
        f'[{name}]',
        f'path = {directory}',
        'guest ok = no',
        'read only = yes',
        f'valid users = {_users(known)}',
    ]
    if as_root:
        lines.append(f'admin users = {_users(known)}')
    if writers:
        lines.append(f'write list = {_users(writers)}')
    return _HEADER + '\n    '.join(lines) + '\n', replies


def format_index(files: Sequence[pathlib.Path]) -> str:
    """Return the text that includes the sections of all these files."""
    return _HEADER + ''.join(f'include = {file}\n' for file in files)


def _refusal(
    rule: AccessRuleForDriver, directory: pathlib.Path, users: Collection[str] | None
) -> str | None:
    """Return why Samba cannot have the rule, or None."""
    if rule['access_type'] != 'user':
        return 'CIFS takes rules of the type user only'
    if not _USER.fullmatch(rule['access_to']):
        return 'Samba does not take % and other special characters in names'
    if not _PATH.fullmatch(str(directory)):
        return 'Samba does not take % and other special characters in paths'
    if users is not None and rule['access_to'] not in users:
        return 'the back end has no such user; users are added by its operator'
    return None


def _users(rules: Sequence[AccessRuleForDriver]) -> str:
    return ' '.join(f'"{to}"' for to in sorted({rule['access_to'] for rule in rules}))
