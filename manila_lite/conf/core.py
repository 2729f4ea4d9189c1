"""Options of the node and of shares in general."""

import re
import socket

from oslo_config import cfg, types


def _hostname() -> str:
    """Return the machine's name, made a legal host name if necessary."""
    name = socket.gethostname()
    try:
        # Names with digits only or with underscores do occur, and the
        # option would reject its own default.
        return types.HostAddress()(name)
    except ValueError:
        return 'host-' + re.sub('[^0-9A-Za-z-]', '-', name).strip('-')


def _my_ip() -> str:
    """Return the source address of this machine; loopback if offline."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(('192.0.2.1', 9))  # sends nothing
            return probe.getsockname()[0]
        except OSError:
            return '127.0.0.1'


GROUP = None
OPTS = [
    cfg.StrOpt(
        'state_path',
        default='/var/lib/manila',
        help='Directory of all state that a service keeps outside of the '
        'database. Give each node its own; set it when the default is '
        'not writable for the user of the service.',
    ),
    cfg.HostAddressOpt(
        'my_ip',
        default=_my_ip(),
        sample_default='<address of the machine>',
        help='Address of this node, to which other options can refer as '
        '$my_ip, such as osapi_share_listen. Set it when the machine has '
        'several.',
    ),
    cfg.HostAddressOpt(
        'host',
        default=_hostname(),
        sample_default='<name of the machine>',
        help='Name of this node; its share services are named '
        'host@backend. Give nodes that serve the same back ends a '
        'common name. Changing it later orphans the shares of the old '
        'name.',
    ),
    cfg.StrOpt(
        'storage_availability_zone',
        default='nova',
        help='Availability zone of the services of this node. Set it per '
        'node when racks or rooms fail independently.',
    ),
    cfg.StrOpt(
        'default_share_type',
        help='Name of the share type of requests that name none. Set it '
        'unless every user has to choose, and create the type: the option '
        'does not. Without the option such shares end in error, and with a '
        'type that does not exist the requests are refused.',
    ),
    cfg.StrOpt(
        'default_share_group_type',
        help='Share group type of requests that name none. Set it unless '
        'every user has to choose.',
    ),
    cfg.IntOpt(
        'service_down_time',
        default=60,
        help='Seconds without a heartbeat after which a service is '
        'considered down. Keep it several times report_interval.',
    ),
    cfg.ListOpt(
        'enabled_share_backends',
        item_type=types.String(regex=r'^[^@#\s]+$'),
        help='Sections of the back ends that this node runs. Add a name '
        'and its section to add a back end; required by the share '
        'service.',
    ),
    cfg.ListOpt(
        'enabled_share_protocols',
        default=['NFS', 'CIFS'],
        help='Protocols that users may request. Keep those that the '
        'enabled back ends can export.',
    ),
    cfg.IntOpt(
        'soft_deleted_share_retention_time',
        default=604800,
        help='Seconds a share stays in the recycle bin. Shorten it when '
        'the capacity is needed earlier.',
    ),
    cfg.ListOpt(
        'admin_only_metadata',
        default=['__affinity_same_host', '__affinity_different_host', '__managed_at'],
        help='Share metadata keys that only administrators may change. Add '
        'keys that your own tools rely on.',
    ),
    cfg.ListOpt(
        'driver_updatable_metadata',
        default=[],
        help='Share metadata keys whose changes are passed to the driver. '
        'Add the keys that the documentation of your drivers lists.',
    ),
    cfg.ListOpt(
        'driver_updatable_subnet_metadata',
        default=[],
        help='Metadata keys of share network subnets whose changes are '
        'passed to the driver. Add the keys that the documentation of '
        'your drivers lists.',
    ),
    cfg.ListOpt(
        'admin_only_el_metadata',
        default=['preferred'],
        help='Export location metadata keys that only administrators may change.',
    ),
    cfg.BoolOpt(
        'update_shares_status_on_ensure',
        default=True,
        help='Show shares in status ensuring while their exports are '
        'ensured. Turn it off when users are not to notice.',
    ),
]
