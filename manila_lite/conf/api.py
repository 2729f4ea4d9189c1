"""What the API accepts and how it writes links."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.IntOpt(
        'osapi_max_limit',
        default=1000,
        help='Most items one page of a list holds. Lower it when '
        'large answers hurt the clients or the network.',
    ),
    cfg.StrOpt(
        'osapi_share_base_URL',
        help='Scheme and host written into links. Set it when '
        'clients reach the API under another address than the '
        'one it sees, for instance behind a proxy that sends '
        'no forwarding headers.',
    ),
    cfg.StrOpt(
        'project_id_regex',
        default=r'[0-9a-f\-]+',
        help='Shape of the optional project id in URLs. Change it '
        'when the project ids of the identity service hold '
        'other characters. Read once, at start.',
    ),
    cfg.BoolOpt(
        'use_scheduler_creating_share_from_snapshot',
        default=False,
        help='Let the scheduler choose a back end for shares made '
        'from snapshots. Turn on when the back ends can copy '
        'from each other; it also allows another zone.',
    ),
    cfg.StrOpt(
        'default_mount_point_prefix',
        default='{project_id}_',
        help='Put before the mount point name a user asks for when '
        'the share type sets no prefix. Keep the project id in '
        'it, or projects take names from each other.',
    ),
    cfg.BoolOpt(
        'is_deferred_deletion_enabled',
        default=False,
        help='Free quota when a delete is accepted and hide the '
        'share from its project while the back end still '
        'deletes. Turn on when deletes are slow there.',
    ),
    cfg.IntOpt(
        'max_request_body_size',
        default=114688,
        min=1024,
        help='Bytes after which a request body is cut off and '
        'refused. Raise it only for clients that send larger '
        'metadata than any published operation needs.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)
