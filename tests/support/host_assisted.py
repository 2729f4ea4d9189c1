"""Migrations of shares that the data service copies, with real bytes."""

import pathlib

from tests.support import share_migrations as migrations
from tests.support.cloud_images import prepared


def content_of(cloud, backend, instance_id):
    """Return the directory with the content of a share instance."""
    return cloud.driver(backend).backend.state.content(instance_id)


@prepared
def create(cloud):
    """Create a share with content and a rule on the back end alpha."""
    share = migrations.create_on_alpha(cloud)
    migrations.allow(cloud, share)
    cloud.settle()
    folder = content_of(cloud, 'alpha', migrations.instance_of(cloud, share))
    fill(folder)
    return share


def fill(folder: pathlib.Path) -> None:
    (folder / 'below').mkdir(parents=True)
    (folder / 'below' / 'file').write_text('precious')
    (folder / 'link').symlink_to('below')
    (folder / 'lost+found').mkdir()


def names(folder: pathlib.Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob('*')}


COPIED = {'below', 'below/file', 'link'}


def start(cloud, share, expect=202, **options):
    return migrations.start(
        cloud,
        share,
        expect=expect,
        **{'writable': False, 'force_host_assisted_migration': True, **options},
    )
