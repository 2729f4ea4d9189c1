"""Export files of the local driver."""

from concurrent import futures
import configparser
import os
import pathlib

import pytest

from manila_lite import exception
from tests.drivers.driver_harness import CTX
from tests.unit.share.drivers.local.local_driver import directory, make, start


class TestAccess:
    def exports(self, root, thing):
        file = root / 'exports' / f'{thing.name}.exports'
        return file.read_text() if file.exists() else None

    def set_rules(self, driver, share, *rules):
        return driver.update_access(CTX, share, list(rules), [], [], [])

    def test_file_is_for_an_nfs_server(self, root, driver, share):
        self.set_rules(
            driver,
            share,
            make.rule(share, '10.0.0.0/24'),
            make.rule(share, '10.0.0.9', access_level='ro'),
        )
        _, line = self.exports(root, share).splitlines()
        assert line == (
            f'{directory(driver, share)} '
            '10.0.0.9(ro,sync,no_subtree_check) '
            '10.0.0.0/24(rw,sync,no_subtree_check)'
        )
        assert sorted(os.listdir(root / 'exports')) == [f'{share.name}.exports']

    def test_share_without_clients_has_no_export_file(self, root, driver, share):
        rule = make.rule(share, '10.0.0.1')
        self.set_rules(driver, share, rule)
        self.set_rules(driver, share)
        assert self.exports(root, share) is None
        self.set_rules(driver, share, rule)
        driver.delete_share(CTX, share)
        assert os.listdir(root / 'exports') == []

    def test_export_options_are_configurable(self, root, share):
        driver = start(root, local_export_options='async,no_root_squash')
        self.set_rules(driver, share, make.rule(share, '10.0.0.1'))
        assert ' 10.0.0.1(rw,async,no_root_squash)\n' in self.exports(root, share)

    @pytest.mark.parametrize('options', ['', 'sync rw', 'sync) *(rw', '#'])
    def test_options_that_break_the_line_are_refused(self, root, options):
        with pytest.raises(exception.BadConfiguration, match='bracket'):
            start(root, local_export_options=options)

    def samba(self, root):
        """Return the parameters of every section that the index includes."""
        index = root / 'exports' / 'smb.conf'
        if not index.exists():
            return {}
        found = configparser.RawConfigParser(delimiters=['='])
        for line in index.read_text().splitlines()[1:]:
            assert line.startswith('include = ')
            found.read_string(pathlib.Path(line.partition('= ')[2]).read_text())
        return {name: dict(found[name]) for name in found.sections()}

    def windows(self, driver):
        share = make.share(share_proto='CIFS')
        driver.create_share(CTX, share)
        return share

    def test_file_is_for_samba_where_the_protocol_is_cifs(self, root, driver):
        first, second = self.windows(driver), self.windows(driver)
        self.set_rules(
            driver,
            first,
            make.rule(first, 'bob smith', access_type='user'),
            make.rule(first, 'alice', access_type='user', access_level='ro'),
        )
        self.set_rules(
            driver,
            second,
            make.rule(second, 'carol', access_type='user', access_level='ro'),
        )
        same = {'guest ok': 'no', 'read only': 'yes'}
        assert self.samba(root) == {
            first.name: same
            | {
                'path': str(directory(driver, first)),
                'valid users': '"alice" "bob smith"',
                'write list': '"bob smith"',
            },
            second.name: same
            | {'path': str(directory(driver, second)), 'valid users': '"carol"'},
        }
        assert self.exports(root, first) is None
        self.set_rules(driver, first)
        assert list(self.samba(root)) == [second.name]
        driver.delete_share(CTX, second)
        assert os.listdir(root / 'exports') == []

    def test_samba_section_has_only_users(self, root, driver):
        share = self.windows(driver)
        address = make.rule(share, '10.0.0.1')
        user = make.rule(share, 'alice', access_type='user')
        assert self.set_rules(driver, share, address, user) == {
            address.id: {
                'state': 'error',
                'reason': 'CIFS takes rules of the type user only',
            },
            user.id: {'state': 'active'},
        }
        assert self.samba(root)[share.name]['valid users'] == '"alice"'
        self.set_rules(driver, share, address)
        assert self.samba(root) == {}

    def test_samba_exports_snapshots_read_only(self, root, driver):
        share = self.windows(driver)
        snapshot = make.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        rule = make.rule(share, 'alice', access_type='user')
        driver.snapshot_update_access(CTX, snapshot, [rule], [rule], [])
        assert 'write list' not in self.samba(root)[snapshot.name]
        driver.delete_snapshot(CTX, snapshot)
        assert self.samba(root) == {}

    def test_samba_index_has_every_file_written_concurrently(self, root, driver):
        shares = [self.windows(driver) for _ in range(12)]

        def set_rules(share):
            self.set_rules(driver, share, make.rule(share, 'alice', access_type='user'))

        with futures.ThreadPoolExecutor(len(shares)) as pool:
            list(pool.map(set_rules, shares))
        assert self.samba(root).keys() == {share.name for share in shares}

    def test_snapshot_is_exported_read_only(self, root, driver, share):
        snapshot = make.snapshot(share)
        answer = driver.create_snapshot(CTX, snapshot)
        rule = make.rule(share, '10.0.0.1')
        driver.snapshot_update_access(CTX, snapshot, [rule], [rule], [])
        path = answer['export_locations'][0]['path']
        assert f'{path} 10.0.0.1(ro,' in self.exports(root, snapshot)
        driver.delete_snapshot(CTX, snapshot)
        assert os.listdir(root / 'exports') == []

    def test_both_ip_versions_are_served(self, driver):
        stats = driver.get_share_stats(refresh=True)
        assert stats['ipv4_support'] is True
        assert stats['ipv6_support'] is True
