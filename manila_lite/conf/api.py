"""Options of the API and its authentication."""

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.IntOpt(
        'osapi_max_limit',
        default=1000,
        help='Maximum number of items on one page of a list. Lower it when '
        'large responses are a problem for clients or the network.',
    ),
    cfg.StrOpt(
        'osapi_share_base_URL',
        help='Scheme and host of the links in responses. Set it when '
        'clients reach the API under another address than the API '
        'sees, for instance behind a proxy that sends no forwarding '
        'headers.',
    ),
    cfg.StrOpt(
        'project_id_regex',
        default=r'[0-9a-f\-]+',
        help='Regular expression of the optional project id in URLs. '
        'Change it when the project ids of the identity service '
        'contain other characters. Read once, at start.',
    ),
    cfg.BoolOpt(
        'use_scheduler_creating_share_from_snapshot',
        default=False,
        help='Let the scheduler choose the back end of shares that are '
        'created from snapshots. Turn it on when back ends can copy '
        'from each other; it also allows another availability zone.',
    ),
    cfg.StrOpt(
        'default_mount_point_prefix',
        default='{project_id}_',
        help='Prefix of mount point names that users request, unless the '
        'share type sets one. Keep the project id in it; otherwise '
        'names of different projects collide.',
    ),
    cfg.BoolOpt(
        'is_deferred_deletion_enabled',
        default=False,
        help='Release the quota when the deletion of a share or snapshot is '
        'accepted, and hide it from its project while the back end '
        'deletes it. Turn it on when back ends are slow to delete.',
    ),
    cfg.FloatOpt(
        'read_time_limit',
        default=10,
        min=0,
        help='Time limit in seconds for each database statement that an API '
        'request reads with; for SQLite, for all of them together. A '
        'request that exceeds it answers 503. Raise it when '
        'administrators sort or search very long lists; 0 means no '
        'limit.',
    ),
    cfg.ListOpt(
        'healthcheck_required',
        item_type=cfg.types.String(choices=['scheduler', 'backends', 'bus']),
        default=[],
        help='What /healthcheck of an API process needs besides its database '
        'to answer 200: scheduler (one is up), backends (all enabled ones are '
        'up), bus (messages are accepted). The rest is only shown. Name them '
        'for monitoring, but not for a load balancer: without them an API '
        'still answers reads and accepts requests. Of these, only bus '
        'concerns scheduler and share processes, which find their work '
        'without messages, too, but later.',
    ),
    cfg.IntOpt(
        'max_request_body_size',
        default=114688,
        min=1024,
        help='Maximum size of a request body in bytes; larger requests are '
        'rejected. Raise it only for clients that send larger '
        'metadata than any published operation needs.',
    ),
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('noauth', 'every caller is an administrator'),
            ('noauthv2', 'another published name of noauth'),
            ('keystone', 'tokens of the identity service'),
            ('http_basic', 'names and passwords from a file'),
        ],
        help='Authentication of the API. Use http_basic for an '
        'installation without Keystone, noauth only for trials on one '
        'machine.',
    ),
    cfg.BoolOpt(
        'noauth_allow_remote',
        default=False,
        help='Let noauth listen on other addresses than loopback. Everyone '
        'who reaches the port is then an administrator, so turn it on '
        'only in a trusted network.',
    ),
]
