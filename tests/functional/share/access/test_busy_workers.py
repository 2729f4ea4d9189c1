"""Access rules are synced while creations keep all workers busy."""

from tests.support.access import ShareRules


def creating(node):
    """Return how many creations are running."""
    return sum(
        (kind, state) == ('provisioning.create_share_instance', 'running')
        for kind, state, *_ in node.owed()
    )


def test_a_deny_does_not_wait_for_slow_creations(build_node):
    node = build_node(backends=['alpha'], work='workers_per_backend = 2').start()
    rules = ShareRules(node, node.create(1))
    node.quiet()
    rule_id = rules.allow()
    node.quiet()
    hang = node.driver().hang_next('create_share', times=2)
    for _ in range(2):
        node.create(1)
    node.until(lambda: creating(node) == 2)
    rules.deny(rule_id)
    node.until(lambda: not rules.rows)
    assert rules.clients == {}
    assert creating(node) == 2
    hang.release()
    node.quiet()
    assert node.problems() == []
