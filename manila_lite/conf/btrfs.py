"""Options of the btrfs driver, in the section of a back end."""

from oslo_config import cfg

OPTS = [
    cfg.StrOpt(
        'btrfs_root',
        default='/var/lib/manila-btrfs/default',
        help='Directory for the mount points, the exports and the state of '
        'the NFS server. Give each btrfs back end its own, with a short '
        'path: it contains a socket. It belongs to root; do not place it in '
        'a directory that other users can write to, such as state_path.',
    ),
    cfg.DictOpt(
        'btrfs_pools',
        default={},
        help='Pools and where they are: a block device or a file that holds '
        'a btrfs, which the driver mounts, or a directory where one is '
        'mounted, for instance fast:/dev/sdb,large:/srv/large.img. '
        '"manila-lite-manage storage prepare" creates one.',
    ),
    cfg.ListOpt(
        'btrfs_export_addresses',
        default=['127.0.0.1'],
        help='Addresses of this machine, IPv4 or IPv6, that clients mount '
        'shares from. Set the ones that clients can reach; the SMB server '
        'listens on these, the NFS server on all addresses of the machine.',
    ),
    cfg.PortOpt(
        'btrfs_nfs_port',
        default=2049,
        help='Port of the NFS server. Give each btrfs back end of a machine its own.',
    ),
    cfg.StrOpt(
        'btrfs_bridge',
        help='Bridge of this machine that share servers are attached to, for '
        'back ends with driver_handles_share_servers. "{segmentation_id}" in '
        'it stands for the segmentation id of the network, for instance in '
        'br-{segmentation_id}: create a bridge for each VLAN, with the VLAN '
        'as a port. Without it networks are flat, or VLANs of a bridge with '
        'vlan_filtering. Share servers keep the bridge that they were set up '
        'with.',
    ),
    cfg.BoolOpt(
        'btrfs_cifs',
        default=False,
        help='Whether there are CIFS shares besides NFS shares. They need '
        'Samba. Users of the back end, or of each of its share servers, are '
        'added with "manila-lite-manage storage user add".',
    ),
    cfg.PortOpt(
        'btrfs_smb_port',
        default=445,
        help='Port of the SMB server, which listens on '
        'btrfs_export_addresses. Many clients use no other port: give each '
        'btrfs back end of a machine its own addresses or its own port. The '
        'SMB servers of share servers listen on their own addresses.',
    ),
    cfg.StrOpt(
        'btrfs_revert_mode',
        default='swap',
        choices=[
            ('swap', 'one step of some milliseconds; clients mount again'),
            ('rewrite', 'files are copied back; clients stay mounted'),
        ],
        help='How a share is reverted to a snapshot. Choose rewrite if '
        'clients cannot mount shares again: it is slower and, when it is '
        'interrupted, leaves the share in error until it is repeated.',
    ),
    cfg.StrOpt(
        'btrfs_replication_type',
        choices=['readable', 'dr'],
        help='Replication type of shares: replicas that are not active are '
        'readable, or not accessible before their promotion (dr). Shares are '
        'replicated between the pools of btrfs back ends of one '
        'replication_domain on this machine. Do not change it while there '
        'are replicas.',
    ),
]
