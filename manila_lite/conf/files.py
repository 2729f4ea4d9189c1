"""What configuration files contain, before any option is looked up."""

from collections.abc import Iterator
import pathlib

from oslo_config import cfg

Sections = dict[str, dict[str, list[str]]]


def sections(conf: cfg.ConfigOpts) -> Iterator[tuple[str, Sections]]:
    """Yield the path of each file, and its values by section and name."""
    folders = [pathlib.Path(path) for path in conf.config_dir or ()]
    more = [str(one) for path in folders for one in sorted(path.glob('*.conf'))]
    for path in [*conf.config_file, *more]:
        found: Sections = {}
        cfg.ConfigParser(path, found).parse()
        yield path, found


def find(conf: cfg.ConfigOpts, section: str, name: str) -> str | None:
    """Return the path of the last file that sets an option, if any."""
    path = None
    for one, found in sections(conf):
        names = {key.replace('-', '_') for key in found.get(section, ())}
        if name in names:
            path = one
    return path
