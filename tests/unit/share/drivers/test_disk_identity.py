from manila_lite.share.drivers import disk_identity


def test_nothing_but_the_identity_is_left_on_a_disk(tmp_path):
    file = tmp_path / 'identity'
    found = disk_identity.create(file)
    assert disk_identity.create(file) == found
    assert [*tmp_path.iterdir()] == [file]
