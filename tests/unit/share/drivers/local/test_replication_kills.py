"""Replicas of directories after a process was killed at any step."""

import pytest

from tests.drivers import content
from tests.drivers.crashes import changes, killed_at_steps
from tests.drivers.replication_sites import Sites
from tests.support import sampling
from tests.unit.share.drivers.local.local_driver import data

pytestmark = [sampling.enumeration, pytest.mark.usefixtures('no_power_failures')]


@pytest.fixture
def build(tmp_path):
    """`build(name)` creates a share with a replica in sync."""

    def build(name):
        folder = tmp_path / name
        folder.mkdir()
        sites = Sites(folder, 'local', 'dr', names=('here', 'there'))
        content.sketch(data(sites.here))
        return sites.create_in_sync()

    return build


def test_killed_copy_is_complete_or_unchanged(build):
    """No other process is needed for that."""

    def change(name):
        sites = build(name)
        before = content.describe(data(sites.there))
        content.redraw(data(sites.here))
        sites.contents = before, content.describe(data(sites.here))
        return sites

    for sites in killed_at_steps(
        change, lambda sites: sites.update(), changes, least=20
    ):
        sites.here.make_unreachable()
        sites.there.restart()
        state = sites.update()
        sites.promote()
        assert content.describe(data(sites.there)) in sites.contents
        assert state == 'out_of_sync'


def test_abandoned_promotion_can_be_resolved(build):
    """Clients regain access, at the latest once the other is deleted."""

    def write(name):
        sites = build(name)
        sites.write('now')
        return sites

    for sites in killed_at_steps(
        write, lambda sites: sites.promote(), changes, least=10
    ):
        for site in sites.sites:
            site.restart()
        sites.apply_rules(sites.here)
        is_open = sites.levels(sites.here) == {'rw'}
        assert (sites.status(sites.here)['status'] == 'available') == is_open
        if is_open:
            assert sites.update() == 'in_sync'
        else:
            assert sites.update() == 'out_of_sync'
            assert sites.read(sites.here) == sites.read() == 'now'
        sites.delete()
        sites.there.state = None
        sites.apply_rules(sites.here)
        assert sites.levels(sites.here) == {'rw'}
        assert sites.status(sites.here)['status'] == 'available'
        assert sites.read(sites.here) == 'now'
