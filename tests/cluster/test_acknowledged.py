"""What is known of requests with an answer, and of those without one."""

import random

import pytest

from tests.cluster.acknowledged import CountedCreations, Creations, Values
from tests.cluster.load import ClusterLoad
from tests.cluster.verbs import ClusterClient
from tests.support.load import TrackedShare

ACCEPTED, REFUSED, UNKNOWN = 200, 409, None


def is_possible(codes, found):
    """Request the values 1, 2 ... with these answers; find another one."""
    values = Values()
    for value, code in enumerate(codes, start=1):
        values.note('share', 'name', value, code)
    return not values.problems('name', {'share': found})


def test_last_accepted_value_is_the_only_possible_one():
    assert is_possible([ACCEPTED, ACCEPTED, REFUSED], 2)
    assert not is_possible([ACCEPTED, ACCEPTED, REFUSED], 1)
    assert not is_possible([ACCEPTED, ACCEPTED, REFUSED], 3)


def test_request_without_an_answer_may_be_carried_out_later():
    for found in (1, 2):
        assert is_possible([ACCEPTED, UNKNOWN], found)
    assert is_possible([UNKNOWN, ACCEPTED], 1)
    assert not is_possible([502, ACCEPTED, 503], 4)
    assert is_possible([502, ACCEPTED, 503], 3)


def test_nothing_is_known_before_the_first_accepted_value():
    assert is_possible([UNKNOWN, REFUSED], 7)


def test_found_value_is_the_one_to_go_on_from():
    values = Values()
    values.note('share', 'name', 1)
    values.note('share', 'name', 2, UNKNOWN)
    assert not values.problems('name', {'share': 2})
    assert values.problems('name', {'share': 1})
    assert not values.problems('name', {})
    assert not values.ids('name')


@pytest.mark.parametrize('new', [Creations.new_name, Creations.new_address])
def test_no_request_creates_two_resources(new):
    creations = Creations()
    accepted, unknown, refused = (new(creations) for _ in range(3))
    creations.created(accepted, 'a')
    creations.refused(refused)
    for rows, number in (
        ([('a', accepted), ('b', unknown)], 0),
        ([('a', 'renamed'), ('b', 'renamed')], 0),
        ([('c', accepted)], 1),
        ([('c', unknown)], 1),
        ([('d', refused)], 1),
        ([('d', refused)], 0),  # known from then on
        ([('e', refused)], 1),
        ([('f', None)], 0),
    ):
        assert len(creations.problems('share', rows)) == number


@pytest.mark.parametrize(
    'found, number',
    [
        (['first'], 0),
        (['first', 'accepted', 'unknown'], 0),
        # Of two that no answer has named, the share began with one.
        (['accepted', 'unknown'], 0),
        (['first', 'accepted', 'unknown', 'second'], 1),
    ],
)
def test_unanswered_request_creates_at_most_one_replica(found, number):
    replicas = CountedCreations(first=1)
    for _ in range(3):
        replicas.may_create('share')
    replicas.created('share', 'accepted')
    replicas.refused('share')
    rows = [(id, 'share') for id in found]
    assert len(replicas.problems('replica', rows)) == number
    assert not replicas.problems('replica', rows)


def test_request_that_was_repeated_creates_no_second_replica():
    replicas = CountedCreations(first=1)
    rows = [('first', 'share')]
    assert not replicas.problems('replica', rows)
    replicas.may_create('share')
    replicas.created('share', 'accepted')
    rows += [('accepted', 'share'), ('second', 'share')]
    assert replicas.problems('replica', rows) == [
        "replicas ['second'] of share exist, and requests can have created "
        'only 0 of them'
    ]


class AnsweringApi:
    """Answers every request by the same document."""

    def __init__(self, document):
        self.last = self
        self.status_code, self.text, self.headers = 200, '', {}
        self._document = document

    def request(self, *args, **facts):
        pass

    def json(self):
        return self._document


@pytest.mark.parametrize(
    'name, undo, listed',
    [('offer', 'withdraw', 'transfers'), ('lock', 'unlock', 'resource_locks')],
)
def test_what_had_no_answer_at_first_is_known_by_its_share(name, undo, listed):
    """It was found in a list; the check looks for the shares of all."""
    api = AnsweringApi({listed: [{'id': 'found'}]})
    load = ClusterLoad(lambda: api, lambda: api, 1, with_data_service=True, clients=1)
    share = TrackedShare('share', 1)
    client = ClusterClient(load, api, random.Random(1))
    assert getattr(client, undo)(share) == 200
    assert load.shares_of['found'] == 'share'
