"""The versions of the API as data, and how to speak about them.

Every version is 2.N. Outside this module a version is the number N.
"""

import itertools
import re
import typing

from manila_lite import exception

# One line per version, told to users by the generated version history.
HISTORY = (
    (0, 'The API as it was before versions; paths and actions with os-.'),
    (1, 'Creating a share respects the availability zone asked for.'),
    (2, 'Shares tell whether they can have snapshots.'),
    (3, 'Administrators see and act on share instances.'),
    (4, 'Consistency groups, replaced by share groups in 2.31.'),
    (5, 'Shares can be migrated to another back end; they show task_state.'),
    (6, 'The type of a share is its id; share_type_name is added.'),
    (7, 'Paths and actions lose the prefix os-.'),
    (8, 'A share brought under management can be made public at once.'),
    (9, 'Export locations are a resource and no longer share fields.'),
    (10, 'Shares and instances show the state of their access rules.'),
    (11, 'Shares can have replicas.'),
    (12, 'Snapshots can be brought under management and released.'),
    (13, 'Access by cephx identity.'),
    (14, 'Export locations tell which path to prefer.'),
    (15, 'Migration actions get names of their own.'),
    (16, 'Shares show the user who made them.'),
    (17, 'Snapshots show the user and project who made them.'),
    (18, 'Share networks show their gateway.'),
    (19, 'Administrators see snapshot instances and reset their status.'),
    (20, 'Share networks show their MTU.'),
    (21, 'Access rules show the key made for them.'),
    (22, 'Migration can preserve metadata and change network and type.'),
    (23, 'Pools can be listed by the share type they could serve.'),
    (24, 'Creating shares from snapshots is an ability of its own.'),
    (25, 'Quotas can be shown with what is in use and reserved.'),
    (26, 'Share networks know Neutron only.'),
    (27, 'A share can be reverted to its newest snapshot.'),
    (28, 'Access rules show whether they are queued or being applied.'),
    (29, 'Migration can preserve snapshots and asks for every choice.'),
    (30, 'Instances and replicas tell whether rules are cast to read only.'),
    (31, 'Share groups, their types and their snapshots.'),
    (32, 'Snapshots can be mounted and have access rules.'),
    (33, 'Access rules show when they were made and changed.'),
    (34, 'Share groups show their zone and kind of consistency.'),
    (35, 'Lists of shares can be filtered by export location.'),
    (36, 'Lists can be filtered by a part of name and description.'),
    (37, 'User messages tell why a request failed later on.'),
    (38, 'Access rules take IPv6 addresses.'),
    (39, 'Quotas can be set per share type.'),
    (40, 'Quotas of share groups and share group snapshots.'),
    (41, 'Share types have a description.'),
    (42, 'Lists of shares can tell how many match in all.'),
    (43, 'Share types can be filtered by extra specs.'),
    (44, 'Security services show their organisational unit.'),
    (45, 'Access rules are a resource and have metadata.'),
    (46, 'Share types and group types tell which one is the default.'),
    (47, 'Replicas have export locations of their own.'),
    (48, 'Share types can be limited to availability zones.'),
    (49, 'Share servers can be brought under management and released.'),
    (50, 'Share types can be renamed and described anew.'),
    (51, 'Share networks have subnets, one per availability zone.'),
    (52, 'User messages can be filtered by time.'),
    (53, 'Quotas of share replicas and their gigabytes.'),
    (54, 'Shares show the progress of being created from a snapshot.'),
    (55, 'Share groups are no longer experimental.'),
    (56, 'Replicas are no longer experimental.'),
    (57, 'Share servers can be migrated.'),
    (58, 'Limits show share groups and share group snapshots.'),
    (59, 'Progress of a migration carries what the driver tells.'),
    (60, 'URLs work without a project id.'),
    (61, 'Share types can set the smallest and largest share.'),
    (62, 'A quota for the size of each single share.'),
    (63, 'Security services of share networks in use can be changed.'),
    (64, 'Administrators can extend a share past the scheduler.'),
    (65, 'Shares can be placed beside or away from other shares.'),
    (66, 'Share group types can be filtered by group specs.'),
    (67, 'Administrators can name the host of a new share.'),
    (68, 'Some metadata keys are reserved to administrators.'),
    (69, 'Shares can be put into a recycle bin and taken back.'),
    (70, 'Share networks can have several subnets in one zone.'),
    (71, 'Share instances show when they were changed.'),
    (72, 'Replicas can be made on a chosen share network.'),
    (73, 'Snapshots have metadata.'),
    (74, 'Access rules can be changed while a replica is in error.'),
    (75, 'Promoting a replica can wait for clients to become quiet.'),
    (76, 'Active Directory services can name a default site.'),
    (77, 'Shares can be handed over to another project.'),
    (78, 'Share network subnets have metadata.'),
    (79, 'Lists of snapshots can tell how many match in all.'),
    (80, 'Shares can have backups.'),
    (81, 'Resource locks keep shares from being deleted.'),
    (82, 'Access rules can be locked and hidden from others.'),
    (83, 'Services show why they were disabled.'),
    (84, 'Shares can be asked for with a mount point name.'),
    (85, 'Backups show their type.'),
    (86, 'Administrators can have a service ensure its shares again.'),
    (87, 'Export locations have metadata.'),
    (88, 'The level of an access rule can be changed.'),
    (89, 'Chosen metadata of subnets reaches the back end.'),
    (90, 'Shares can be encrypted by a key of the user.'),
    (91, 'Backups can be restored to another share.'),
    (92, 'Shares brought under management can have a mount point name.'),
    (93, 'Services can be filtered by whether they ensure shares.'),
    (94, 'Share types can carry quality-of-service types.'),
    (95, 'Replicas have metadata.'),
    (96, 'Share migration is no longer experimental.'),
    (97, 'Lists of shares can be filtered by availability zone.'),
    (98, 'Progress of a share migration is read by GET.'),
    (99, 'Snapshots can inherit the access rules of their share.'),
)
MIN = HISTORY[0][0]
MAX = LATEST = HISTORY[-1][0]

PREFIX = '/v2'
HEADER = 'X-OpenStack-Manila-API-Version'
EXPERIMENTAL_HEADER = 'X-OpenStack-Manila-API-Experimental'

_WELL_FORMED = re.compile(r'([1-9][0-9]*)\.(0|[1-9][0-9]*)')


class Window(typing.NamedTuple):
    """The versions from `since` to `until`, both included."""

    since: int
    until: int

    def __contains__(self, minor: object) -> bool:
        return self.since <= minor <= self.until  # type: ignore[operator]

    def overlaps(self, other: 'Window') -> bool:
        return self.since <= other.until and other.since <= self.until


ALWAYS = Window(MIN, MAX)


def text(minor: int) -> str:
    """The version as it is written in headers: 2.N."""
    return f'2.{minor}'


_BY_TEXT = {text(minor): minor for minor in range(MIN, MAX + 1)}


def parse(version: str) -> int:
    """The number N of the version 2.N that a client asks for.

    Raises InvalidVersionHeader for what is no version at all and
    VersionNotServed for one outside MIN to MAX.
    """
    minor = _BY_TEXT.get(version)
    if minor is not None:
        return minor
    if not _WELL_FORMED.fullmatch(version):
        raise exception.InvalidVersionHeader(text=version)
    raise exception.VersionNotServed(
        text=version, minimum=text(MIN), maximum=text(MAX)
    )


def window(since: str | None = None, until: str | None = None) -> Window:
    """The window between two versions; an absent end is open."""
    return Window(
        MIN if since is None else parse(since),
        MAX if until is None else parse(until),
    )


def span(text: str | None) -> Window | None:
    """The window written as '2.11-2.55', or '2.57-' with an open end."""
    if text is None:
        return None
    since, _, until = text.partition('-')
    return window(since, until or None)


def overlapping(windows: typing.Iterable[Window]) -> bool:
    """Tell whether any version lies in two of the windows."""
    ordered = sorted(windows)
    return any(
        early.overlaps(late) for early, late in itertools.pairwise(ordered)
    )
