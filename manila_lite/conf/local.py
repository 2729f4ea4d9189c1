"""Back-end section options of the driver for plain directories."""

from oslo_config import cfg

OPTS = [
    cfg.StrOpt('local_root', default='$state_path/local',
               help='Directory that holds the shares. Put it on the disk '
                    'that is to be given away; give each local back end '
                    'its own.'),
    cfg.FloatOpt('local_capacity_gb', min=0,
                 help='GiB reported as total capacity; all the file '
                      'system has when unset. Set it when the disk serves '
                      'others as well.'),
    cfg.StrOpt('local_export_options', default='sync,no_subtree_check',
               help='Options, besides rw or ro, of every client in the '
                    'files that NFS servers read (see exports(5)).'),
]


def register_backend(conf: cfg.ConfigOpts, group: str) -> None:
    conf.register_opts(OPTS, group)
