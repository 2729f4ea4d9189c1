"""The versions of the API as data, and their parsing and comparison.

Every version is 2.N. Outside this module a version is the number N.
"""

import functools
import itertools
import re
import typing

from manila_lite import exception

# One line per version; the version history for users is generated from it.
HISTORY = (
    (0, 'The API before microversions; paths and actions begin with os-.'),
    (1, 'Creating a share respects the requested availability zone.'),
    (2, 'Shares show whether they support snapshots.'),
    (3, 'Administrators can list and change share instances.'),
    (4, 'Consistency groups, replaced by share groups in 2.31.'),
    (5, 'Shares can be migrated to another back end; they show task_state.'),
    (6, 'Shares show the id of their type; share_type_name is added.'),
    (7, 'Paths and actions lose the prefix os-.'),
    (8, 'A share can be made public when it is managed.'),
    (9, 'Export locations are a resource and no longer share fields.'),
    (10, 'Shares and instances show the state of their access rules.'),
    (11, 'Shares can have replicas.'),
    (12, 'Snapshots can be managed and unmanaged.'),
    (13, 'Access rules for cephx identities.'),
    (14, 'Export locations show which path is preferred.'),
    (15, 'Migration actions have separate names.'),
    (16, 'Shares show the user who created them.'),
    (17, 'Snapshots show the user and project who created them.'),
    (18, 'Share networks show their gateway.'),
    (19, 'Administrators see snapshot instances and reset their status.'),
    (20, 'Share networks show their MTU.'),
    (21, 'Access rules show their access key.'),
    (22, 'Migration can preserve metadata and change network and type.'),
    (23, 'Pools can be listed by the share type they could serve.'),
    (24, 'Creating shares from snapshots is a separate capability.'),
    (25, 'Quotas can be shown with their usage and reservations.'),
    (26, 'Share networks support Neutron only.'),
    (27, 'A share can be reverted to its newest snapshot.'),
    (28, 'Access rules show whether they are queued or being applied.'),
    (29, 'Migration can preserve snapshots and requires every option.'),
    (30, 'Instances and replicas show whether rules are cast to read only.'),
    (31, 'Share groups, their types and their snapshots.'),
    (32, 'Snapshots can be mounted and have access rules.'),
    (33, 'Access rules show when they were created and changed.'),
    (34, 'Share groups show their zone and consistency support.'),
    (35, 'Lists of shares can be filtered by export location.'),
    (36, 'Lists can be filtered by parts of the name and description.'),
    (37, 'User messages explain failures of accepted requests.'),
    (38, 'Access rules accept IPv6 addresses.'),
    (39, 'Quotas can be set per share type.'),
    (40, 'Quotas of share groups and share group snapshots.'),
    (41, 'Share types have a description.'),
    (42, 'Lists of shares can show the total number of matches.'),
    (43, 'Share types can be filtered by extra specs.'),
    (44, 'Security services show their organisational unit.'),
    (45, 'Access rules are a resource and have metadata.'),
    (46, 'Share types and group types show which one is the default.'),
    (47, 'Replicas have export locations of their own.'),
    (48, 'Share types can be limited to availability zones.'),
    (49, 'Share servers can be managed and unmanaged.'),
    (50, 'The name and description of share types can be changed.'),
    (51, 'Share networks have subnets, one per availability zone.'),
    (52, 'User messages can be filtered by time.'),
    (53, 'Quotas of share replicas and their gigabytes.'),
    (54, 'Shares show the progress of being created from a snapshot.'),
    (55, 'Share groups are no longer experimental.'),
    (56, 'Replicas are no longer experimental.'),
    (57, 'Share servers can be migrated.'),
    (58, 'Limits show share groups and share group snapshots.'),
    (59, 'Migration progress includes what the driver reports.'),
    (60, 'URLs work without a project id.'),
    (61, 'Share types can limit the size of shares.'),
    (62, 'A quota for the size of a single share.'),
    (63, 'Security services of share networks in use can be changed.'),
    (64, 'Administrators can extend a share without the scheduler.'),
    (65, 'Shares can be placed together with or apart from other shares.'),
    (66, 'Share group types can be filtered by group specs.'),
    (67, 'Administrators can name the host of a new share.'),
    (68, 'Some metadata keys are reserved for administrators.'),
    (69, 'Shares can be moved to a recycle bin and restored.'),
    (70, 'Share networks can have several subnets in one zone.'),
    (71, 'Share instances show when they were changed.'),
    (72, 'Replicas can be created on a chosen share network.'),
    (73, 'Snapshots have metadata.'),
    (74, 'Access rules can be changed while a replica is in error.'),
    (75, 'Promoting a replica can wait until clients are quiesced.'),
    (76, 'Active Directory services can name a default site.'),
    (77, 'Shares can be transferred to another project.'),
    (78, 'Share network subnets have metadata.'),
    (79, 'Lists of snapshots can show the total number of matches.'),
    (80, 'Shares can have backups.'),
    (81, 'Resource locks keep shares from being deleted.'),
    (82, 'Access rules can be locked and hidden from others.'),
    (83, 'Services show why they were disabled.'),
    (84, 'Shares can be created with a mount point name.'),
    (85, 'Backups show their type.'),
    (86, 'Administrators can make a service ensure its shares.'),
    (87, 'Export locations have metadata.'),
    (88, 'The level of an access rule can be changed.'),
    (89, 'Selected metadata of subnets is sent to the back end.'),
    (90, 'Shares can be encrypted with a key of the user.'),
    (91, 'Backups can be restored to another share.'),
    (92, 'Managed shares can have a mount point name.'),
    (93, 'Services can be filtered by whether they ensure shares.'),
    (94, 'Share types can have quality-of-service types.'),
    (95, 'Replicas have metadata.'),
    (96, 'Share migration is no longer experimental.'),
    (97, 'Lists of shares can be filtered by availability zone.'),
    (98, 'The progress of a share migration is read by GET.'),
    (99, 'Snapshots can inherit the access rules of their share.'),
)
MIN = HISTORY[0][0]
MAX = LATEST = HISTORY[-1][0]

PREFIX = '/v2'
HEADER = 'X-OpenStack-Manila-API-Version'
EXPERIMENTAL_HEADER = 'X-OpenStack-Manila-API-Experimental'

_WELL_FORMED = re.compile(r'([1-9][0-9]*)\.(0|[1-9][0-9]*)')


class Window(typing.NamedTuple):
    """The versions from `since` to `until`, inclusive."""

    since: int
    until: int

    def __contains__(self, minor: object) -> bool:
        return self.since <= minor <= self.until  # type: ignore[operator]

    def overlaps(self, other: 'Window') -> bool:
        return self.since <= other.until and other.since <= self.until


ALWAYS = Window(MIN, MAX)


def text(minor: int) -> str:
    """Return the version as it is written in headers: 2.N."""
    return f'2.{minor}'


_BY_TEXT = {text(minor): minor for minor in range(MIN, MAX + 1)}


def parse(version: str) -> int:
    """Return the number N of the version 2.N that a client requests.

    Raises InvalidVersionHeader if it is not a version and VersionNotServed if
    it is outside MIN to MAX.
    """
    minor = _BY_TEXT.get(version)
    if minor is not None:
        return minor
    if not _WELL_FORMED.fullmatch(version):
        raise exception.InvalidVersionHeader(text=version)
    raise exception.VersionNotServed(text=version, minimum=text(MIN), maximum=text(MAX))


def window(since: str | None = None, until: str | None = None) -> Window:
    """Return the window between two versions; None leaves an end open."""
    return Window(
        MIN if since is None else parse(since), MAX if until is None else parse(until)
    )


def before(version: str) -> Window:
    """Return the window of all versions before this one."""
    return Window(MIN, parse(version) - 1)


@functools.cache
def span(text: str | None) -> Window | None:
    """Parse a window such as '2.11-2.55', or '2.57-' with an open end."""
    if text is None:
        return None
    since, _, until = text.partition('-')
    return window(since, until or None)


def overlapping(windows: typing.Iterable[Window]) -> bool:
    """Return whether any version is in two of the windows."""
    ordered = sorted(windows)
    return any(early.overlaps(late) for early, late in itertools.pairwise(ordered))
