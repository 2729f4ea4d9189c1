"""Many clients add and deny rules on a back end that fails at times.

On each database, with and without the locks that only save work.
The same with ten thousand requests over HTTP is in
`benchmarks/access_rules.py`.
"""

import collections
import concurrent.futures
import random

import pytest

from manila_lite import exception
from tests.support import sampling
from tests.support.access import ShareRules

pytestmark = sampling.dialects


CLIENTS = 16
REQUESTS = 16
SHARES = 10
TARGETS = 12
FAILING = 0.05


class Client:
    """Adds and denies rules of shares used by other clients, too."""

    def __init__(self, shares, seed):
        self.shares = shares
        self.rng = random.Random(seed)
        self.answers = collections.Counter()

    def run(self):
        for _ in range(REQUESTS):
            rules = self.rng.choice(self.shares)
            verb = self.rng.choice((self.allow, self.allow, self.deny))
            try:
                verb(rules)
                self.answers[verb.__name__] += 1
            except (
                exception.ShareAccessExists,
                exception.ShareAccessNotFound,
            ) as error:
                self.answers[type(error).__name__] += 1

    def allow(self, rules):
        rules.allow(
            f'10.0.0.{self.rng.randrange(TARGETS)}', self.rng.choice(('rw', 'ro'))
        )

    def deny(self, rules):
        rules.deny(self.rng.choice(sorted(rules.rows) or ['none']))


@pytest.mark.parametrize('locked', [False, True], ids=['no locks', 'locks'])
def test_only_clients_with_active_rules_have_access_at_rest(build_node, locked):
    node = build_node(backends=['alpha'], locked=locked).start()
    shares = [ShareRules(node, node.create()) for _ in range(SHARES)]
    node.quiet()
    broken = random.Random(str(locked))
    refused = []

    def refuse(verb, rule):
        fails = broken.random() < FAILING
        if fails:
            refused.append(verb)
        return fails

    node.driver().refuse_rules(refuse)
    clients = [Client(shares, number) for number in range(CLIENTS)]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(client.run) for client in clients]:
            done.result()
    node.settle()
    assert node.problems() == []
    states = {state for rules in shares for state in rules.states.values()}
    assert {'active'} <= states <= {'active', 'error'}
    assert refused  # all of which may be denied in the end
    answers = sum((client.answers for client in clients), collections.Counter())
    assert answers['allow'] > answers['deny'] > CLIENTS
    asked = answers['allow'] + answers['deny']
    assert len(node.driver().access_calls) < asked
