"""What the view of a share tells."""


def test_any_administrator_sees_the_host(world):
    assert world.admin.show(world.share)['host'].startswith('node@')
    assert 'host' not in world.member.show(world.share)
