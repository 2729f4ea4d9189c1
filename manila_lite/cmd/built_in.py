"""What `manila-lite serve` has without a configuration file.

Back ends and share types for a first look at everything: real directories,
two back ends that replicate to each other, two with share servers.
"""

from collections.abc import Mapping
import pathlib
import typing

from oslo_config import cfg

from manila_lite import conf as options
from manila_lite.conf import network
from manila_lite.db.queries.types import group_types, types as share_types
from manila_lite.db.session import Session
from manila_lite.share.drivers.btrfs import machine, trials

HOST = 'manila-lite'
LOCAL, NFS, CEPH = 'local', 'nfs', 'ceph'
DEFAULT_TYPE = 'default'
POOL_SIZE = 20 << 30

_DRIVERS = {LOCAL: 'local', NFS: 'btrfs', CEPH: 'cephfs'}
"""Those of the back end with real files, of which there is one."""

_INSTANT = {
    'share_driver': 'dummy',
    'dummy_driver_default_driver_method_delay': 0,
    'dummy_driver_driver_methods_delays': {},
}
_REPLICATED = {
    **_INSTANT,
    'driver_handles_share_servers': False,
    'replication_domain': 'dummy',
}
_SERVED = {
    **_INSTANT,
    'driver_handles_share_servers': True,
    # A network for documentation, where nothing else is.
    'standalone_network_plugin_gateway': '198.51.100.1',
    'standalone_network_plugin_mask': '24',
    'standalone_network_plugin_network_type': 'flat',
}
_BACKENDS: Mapping[str, Mapping[str, typing.Any]] = {
    'dummy': _REPLICATED,
    'mirror': _REPLICATED,
    'served': _SERVED,
    'reserve': _SERVED,
}
"""The options of each, beside the one with real files."""

_SPECS = {
    'driver_handles_share_servers': 'False',
    'snapshot_support': 'True',
    'create_share_from_snapshot_support': 'True',
    'revert_to_snapshot_support': 'True',
}
_TYPES = {
    'dummy': _SPECS | {'share_backend_name': 'dummy'},
    'replicated': _SPECS | {'replication_type': 'readable'},
    'served': _SPECS | {'driver_handles_share_servers': 'True'},
}
_DESCRIPTIONS = {
    DEFAULT_TYPE: 'Shares with files',
    'dummy': 'Shares without files, also in share groups',
    'replicated': 'Shares without files that can have replicas',
    'served': 'Shares without files on share servers of share networks',
}
_GROUPED = (DEFAULT_TYPE, 'dummy', 'replicated')
"""The types of the shares in groups of the default type."""

_INTERVALS = {
    'replica_state_update_interval': 10,
    'migration_driver_continue_update_interval': 2,
    'server_migration_driver_continue_update_interval': 2,
    'driver_backup_continue_update_interval': 2,
    'driver_restore_continue_update_interval': 2,
}
"""Seconds: what a back end does is seen soon."""


def configure(
    conf: cfg.ConfigOpts, *, nfs_address: str | None, ceph_conf: str | None = None
) -> None:
    """Set the options.

    With an address, NFS clients mount shares there; with the configuration file
    of a Ceph cluster, clients of that mount shares on its file system, and the
    address is that of an NFS gateway.
    """
    conf.set_default('host', HOST)
    conf.set_default('default_share_type', DEFAULT_TYPE)
    conf.set_default('default_share_group_type', DEFAULT_TYPE)
    for name, seconds in _INTERVALS.items():
        conf.set_default(name, seconds)
    is_nfs = nfs_address is not None and ceph_conf is None
    first = first_backend(is_nfs, ceph_conf is not None)
    conf.set_override('enabled_share_backends', [first, *_BACKENDS])
    _set_backend(
        conf,
        first,
        {'share_driver': _DRIVERS[first], 'driver_handles_share_servers': False},
    )
    for name, values in _BACKENDS.items():
        _set_backend(conf, name, values)
    if ceph_conf is not None:
        conf.set_default('enabled_share_protocols', ['CEPHFS', 'NFS', 'CIFS'])
        conf.set_override('cephfs_conf_path', ceph_conf, CEPH)
        gateways = [] if nfs_address is None else [nfs_address]
        conf.set_override('cephfs_nfs_gateways', gateways, CEPH)
    elif nfs_address is not None:
        _configure_nfs(conf, nfs_address)


def first_backend(nfs: bool, ceph: bool) -> str:
    """Return the name of the back end with real files."""
    return CEPH if ceph else NFS if nfs else LOCAL


def _set_backend(
    conf: cfg.ConfigOpts, name: str, values: Mapping[str, typing.Any]
) -> None:
    options.register_backend(conf, name)
    network.register_network(conf, name)
    for option, value in values.items():
        conf.set_override(option, value, name)


def _configure_nfs(conf: cfg.ConfigOpts, address: str) -> None:
    """Create the pool at the first start, if this machine can use it."""
    folder = pathlib.Path(conf.state_path)
    image = folder / 'nfs.img'
    problems = [
        f'{one.name} is missing ({one.remedy})'
        for one in machine.REQUIREMENTS
        if not one.is_met()
    ]
    if not problems and not image.exists():
        problems = [
            f'{trial.name} ({problem})'
            for trial in trials.TRIALS
            if (problem := trial.failure_reason())
        ]
    if problems:
        raise options.BadConfiguration(
            f'this machine cannot serve NFS: {", ".join(problems)}'
        )
    machine.create_image(image, POOL_SIZE)
    for name, value in (
        ('btrfs_root', str(folder / 'nfs')),
        ('btrfs_pools', {'nfs': str(image)}),
        ('btrfs_export_addresses', [address]),
        ('btrfs_cifs', all(met.is_met() for met in machine.CIFS_REQUIREMENTS)),
    ):
        conf.set_override(name, value, NFS)


def add_types(session: Session, first: str) -> None:
    """Create the initial types unless there are any share types."""
    if share_types.has_any(session):
        return
    types = {DEFAULT_TYPE: _SPECS | {'share_backend_name': first}} | _TYPES
    ids = {
        name: share_types.create(
            session,
            name=name,
            description=_DESCRIPTIONS[name],
            is_public=True,
            extra_specs=specs,
        )
        for name, specs in types.items()
    }
    group_types.create(
        session,
        name=DEFAULT_TYPE,
        is_public=True,
        group_specs={},
        share_types=[ids[name] for name in _GROUPED],
    )
