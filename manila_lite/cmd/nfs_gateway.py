"""manila-lite-nfs-gateway: serve shares on CephFS by NFS."""

import argparse
import pathlib

from manila_lite.cmd import console, start
from manila_lite.share.drivers.cephfs.gateway import Gateway
from manila_lite.share.drivers.contract.configuration import Configuration

PROG = 'manila-lite-nfs-gateway'


def main() -> None:
    """Serve until something ends or does not answer."""
    with start.report_errors(PROG):
        args = _arguments()
        conf = start.configure(PROG, config_files=args.config_file)
        configuration = Configuration(conf, args.backend)
        Gateway(configuration, args.address, args.folder.absolute(), args.port).run()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=PROG, description='Serve the NFS shares of a back end on CephFS.'
    )
    console.add_version(parser)
    parser.add_argument(
        '--config-file',
        action='append',
        metavar='F',
        help='configuration file with the section of the back end',
    )
    parser.add_argument(
        '--backend', required=True, metavar='B', help='section of the back end'
    )
    parser.add_argument(
        '--address',
        required=True,
        metavar='A',
        help='address of this machine, as in cephfs_nfs_gateways',
    )
    parser.add_argument(
        '--folder',
        type=pathlib.Path,
        default=pathlib.Path('/var/lib/manila-nfs-gateway'),
        metavar='D',
        help='where it writes what NFS-Ganesha reads (default: %(default)s)',
    )
    parser.add_argument(
        '--port', type=console.port, default=2049, help='port (default: %(default)s)'
    )
    return parser.parse_args()


if __name__ == '__main__':
    main()
