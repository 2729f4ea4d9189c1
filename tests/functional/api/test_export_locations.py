"""Where shares are found by those who mount them."""


def test_lists_have_no_timestamps_in_any_version(world):
    for version in ('2.9', '2.13', '2.14'):
        for one in world.admin.get(f'/shares/{world.share}/export_locations',
                                   version=version)['export_locations']:
            assert not {'created_at', 'updated_at'} & set(one)
