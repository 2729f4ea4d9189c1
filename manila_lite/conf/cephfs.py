"""Options of the cephfs driver, in the section of a back end."""

from oslo_config import cfg

OPTS = [
    cfg.StrOpt(
        'cephfs_conf_path',
        default='/etc/ceph/ceph.conf',
        help='Configuration file of the cluster: the addresses of its '
        'monitors at least.',
    ),
    cfg.StrOpt(
        'cephfs_auth_id',
        default='manila_lite',
        help='Ceph user of the driver, without "client.". Its page says which '
        'capabilities it needs.',
    ),
    cfg.StrOpt(
        'cephfs_keyring_path',
        help='Keyring of this user; when unset, where Ceph looks for one, such '
        'as /etc/ceph/ceph.client.manila_lite.keyring.',
    ),
    cfg.StrOpt(
        'cephfs_filesystem_name',
        help='File system that holds the shares. Required if the cluster has several.',
    ),
    cfg.StrOpt(
        'cephfs_volume_group',
        default='manila_lite',
        regex='[A-Za-z0-9][A-Za-z0-9._-]*',
        help='Subvolume group of the shares, which is created if it is '
        'missing. Give each back end its own; share services that have the '
        'same host use the same.',
    ),
    cfg.StrOpt(
        'cephfs_data_pool',
        help='Data pool of the file system for new shares, such as an '
        'erasure-coded one; when unset, the default of the file system.',
    ),
    cfg.StrOpt(
        'cephfs_records_pool',
        help='Pool for the records of the driver. It must be replicated, as '
        'erasure-coded pools have no omap; when unset, the first data pool of '
        'the file system.',
    ),
    cfg.StrOpt(
        'cephfs_share_mode',
        default='0777',
        regex='[0-7]{3,4}',
        help='Mode of the directory of a new share. With the default any user '
        'of a client that has access may write; restrict it if only root '
        'of the clients should.',
    ),
    cfg.StrOpt(
        'cephfs_replication_type',
        choices=['readable', 'dr'],
        help='Replication type of shares: replicas that are not active are '
        'read-only (readable) or not accessible (dr). Shares are replicated between '
        'the cephfs back ends of one replication_domain, which may be groups, file '
        'systems or clusters. Do not change it while there are replicas.',
    ),
    cfg.ListOpt(
        'cephfs_nfs_gateways',
        item_type=cfg.types.IPAddress(),
        default=[],
        help='Addresses of NFS gateways, each of a machine that runs '
        '"manila-lite-nfs-gateway". With it there are shares with the protocol NFS. '
        'Each share prefers one of them, and its clients may mount it from any.',
    ),
    cfg.ListOpt(
        'cephfs_nfs_virtual_addresses',
        item_type=cfg.types.IPAddress(),
        default=[],
        help='Addresses that move from one NFS gateway to another when it fails, such '
        'as those of keepalived. Shares prefer one of them as their export location, '
        'and have the addresses of the gateways as further ones.',
    ),
    cfg.StrOpt(
        'cephfs_nfs_auth_id',
        default='manila_lite_nfs',
        help='Ceph user of the NFS gateways, without "client.", which reads the '
        'records of the driver.',
    ),
    cfg.StrOpt(
        'cephfs_nfs_keyring_path',
        help='Keyring of this user on the gateways; when unset, where Ceph looks '
        'for one, such as /etc/ceph/ceph.client.manila_lite_nfs.keyring.',
    ),
    cfg.IntOpt(
        'cephfs_command_timeout',
        default=30,
        min=1,
        help='Seconds that a call of the cluster may take. The call is then '
        'given up and the operation repeated. Keep it above the time that '
        'a manager or metadata server needs for its fail-over.',
    ),
    cfg.StrOpt(
        'cephfs_python',
        default='/usr/bin/python3',
        help='Python interpreter that has the module rados (python3-rados of '
        'the distribution), with which the driver calls the cluster. It must find '
        'libcephfs.so.2 (libcephfs2) for reverts, and have the module cephfs '
        '(python3-cephfs) for NFS gateways.',
    ),
]
