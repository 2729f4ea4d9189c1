"""Clients and endpoints follow their contract."""

import pytest

from manila_lite import exception
from manila_lite.rpc import contract, hints
from manila_lite.rpc.contract import Contract, call, durable, implements
from manila_lite.states.machine import GiveUp, Machine

MACHINE = Machine(
    'thing',
    'things',
    initial={'create': 'at_rest'},
    moves=[
        ('extend', {'at_rest'}, 'extending'),
        ('extended', {'extending'}, 'at_rest'),
        ('extend_failed', {'extending'}, 'broken'),
        ('extend_refused', {'extending'}, 'at_rest'),
    ],
    at_rest={'at_rest', 'broken'},
    in_flight={'extending': GiveUp('extend_failed')},
)


class ThingCareRpc(Contract):
    topic, version = 'manila-things', '1.3'

    @durable(
        failure=(MACHINE, 'extend_failed'),
        action='a',
        detail='d',
        refused={exception.InvalidInput: ('extend_refused', 'r')},
    )
    def extend(self, ctx, instance_id, new_size, force=False): ...

    @durable(coalesced=True, repeatable=True)
    def sync(self, ctx, thing_id): ...

    @call(timeout=5)
    def check(self, ctx, instance_id, options=None): ...


@implements(ThingCareRpc)
class Things:
    def __init__(self):
        self.calls = []

    def prepare_extend(self, session, job):
        return 'prepared'

    def extend(self, job, instance_id, new_size, force=False):
        self.calls.append((job, instance_id, new_size, force))

    def dropped_extend(self, session, job):
        return 'dropped'

    def failed_extend(self, session, job, error):
        return True

    def sync(self, job, thing_id):
        self.calls.append((job, thing_id))

    def check(self, ctx, instance_id, options=None):
        return [ctx.project_id, instance_id, options]


class Submitted:
    """Records submitted work instead of storing it."""

    def __init__(self):
        self.items = []

    def __call__(self, session, ctx, durable, queue, args):
        self.items.append((session, ctx, durable.kind, queue, args))
        return 'work-id'


@pytest.fixture
def submitted():
    return Submitted()


@pytest.fixture
def client(submitted, rpc_transport):
    return contract.Client(ThingCareRpc, submitted, rpc_transport)


def test_kinds_carry_what_was_declared():
    kinds = contract.work_kinds(ThingCareRpc)
    assert set(kinds) == {'thing_care.extend', 'thing_care.sync'}
    extend, sync = kinds['thing_care.extend'], kinds['thing_care.sync']
    assert (extend.method, extend.args, dict(extend.defaults)) == (
        'extend',
        ('instance_id', 'new_size', 'force'),
        {'force': False},
    )
    assert (extend.topic, extend.resource, extend.one_per) == (
        'manila-things',
        'instance_id',
        None,
    )
    assert (sync.resource, sync.one_per) == ('thing_id', 'thing_id')
    assert (extend.repeatable, sync.repeatable) == (False, True)


def test_failure_depends_on_the_error():
    kinds = contract.work_kinds(ThingCareRpc)
    extend = kinds['thing_care.extend']
    assert extend.failure == contract.Failure(MACHINE, 'extend_failed', 'a', 'd')
    assert extend.failure_of(ValueError()) == extend.failure
    assert extend.failure_of(exception.InvalidInput(reason='x')) == (
        contract.Failure(MACHINE, 'extend_refused', 'a', 'r')
    )
    assert kinds['thing_care.sync'].failure is None
    assert kinds['thing_care.sync'].failure_of(ValueError()) is None


def test_name_may_be_given():
    class OddRpc(Contract):
        topic, version, name = 't', '1.0', 'even'

        @durable()
        def work(self, ctx, instance_id): ...

    assert list(contract.work_kinds(OddRpc)) == ['even.work']


@pytest.mark.parametrize(
    'declared',
    [
        {'failure': (MACHINE, 'no_such_move')},
        {
            'failure': (MACHINE, 'extend_failed'),
            'refused': {ValueError: ('no_such_move', None)},
        },
        {'refused': {ValueError: ('extend_refused', None)}},
    ],
)
def test_failure_that_is_no_move_of_the_table_is_refused(declared):
    with pytest.raises(TypeError, match=r'no_such_move|need a failure'):
        durable(**declared)


def test_durable_stub_without_a_resource_is_refused():
    with pytest.raises(TypeError, match=r'wrong\.work.*resource'):

        class Wrong(Contract):
            topic, version = 't', '1.0'

            @durable()
            def work(self, ctx): ...


def test_flags_of_a_contract_are_those_of_its_methods_unless_declared():
    class CareRpc(Contract):
        topic, version = 't', '1.0'
        repeatable = coalesced = True

        @durable()
        def sync(self, ctx, thing_id): ...

        @durable(coalesced=False, repeatable=False)
        def paint(self, ctx, thing_id): ...

    sync, paint = contract.work_kinds(CareRpc).values()
    assert (sync.one_per, sync.repeatable) == ('thing_id', True)
    assert (paint.one_per, paint.repeatable) == (None, False)


def test_stub_without_a_declaration_is_refused():
    with pytest.raises(TypeError, match='neither'):

        class Wrong(Contract):
            topic, version = 't', '1.0'

            def work(self, ctx, instance_id): ...


def test_stub_without_ctx_is_refused():
    with pytest.raises(TypeError, match='ctx'):

        class Wrong(Contract):
            topic, version = 't', '1.0'

            @durable()
            def work(self, instance_id): ...


def test_client_stores_durable_work_on_the_queue_of_a_host(client, submitted, ctx):
    answer = client.on('host@one#pool').extend(
        'session', ctx, instance_id='i', new_size=3
    )
    assert answer == 'work-id'
    assert submitted.items == [
        (
            'session',
            ctx,
            'thing_care.extend',
            'host@one',
            {'instance_id': 'i', 'new_size': 3, 'force': False},
        )
    ]


def test_client_without_a_host_uses_the_queue_of_the_topic(client, submitted, ctx):
    client.sync('session', ctx, thing_id='t')
    assert submitted.items[0][3] == 'manila-things'


@pytest.mark.parametrize(
    'args',
    [
        {'instance_id': 'i'},
        {'instance_id': 'i', 'new_size': 1, 'old_size': 2},
        {'instance_id': 'i', 'size': 1},
    ],
)
def test_client_refuses_arguments_that_do_not_fit(client, submitted, ctx, args):
    with pytest.raises(TypeError, match=r'thing_care\.extend takes'):
        client.on('host').extend('session', ctx, **args)
    assert submitted.items == []


def test_client_has_no_other_methods(client):
    with pytest.raises(AttributeError, match='shrink'):
        client.on('host').shrink('session')


def test_call_is_answered_by_the_given_host(client, rpc_transport, serving, ctx):
    serving(rpc_transport.serve('manila-things', 'host@one', [Things()]))
    assert client.on('host@one#pool').check(ctx, instance_id='i') == ['p1', 'i', None]
    with pytest.raises(exception.ServiceUnavailable):
        client.on('host@two').check(ctx, instance_id='i')


def test_call_without_a_host_is_answered_by_any(client, rpc_transport, serving, ctx):
    serving(rpc_transport.serve('manila-things', 'host@one', [Things()]))
    assert client.check(ctx, instance_id='i', options={'a': 1}) == ['p1', 'i', {'a': 1}]


def test_contracts_of_one_topic_are_separate(rpc_transport, serving, ctx, received):
    class OtherRpc(Contract):
        topic, version = 'manila-things', '2.0'

        @call()
        def check(self, ctx, instance_id): ...

    @implements(OtherRpc)
    class Other:
        def check(self, ctx, instance_id):
            return 'other'

    serving(
        hints.HintListener(
            rpc_transport, 'manila-things', 'host', received.add, [Things(), Other()]
        )
    )
    ask = contract.Client(OtherRpc, Submitted(), rpc_transport).on('host')
    assert ask.check(ctx, instance_id='i') == 'other'


def test_durable_methods_cannot_be_called_by_message(rpc_transport, serving, ctx):
    things = Things()
    serving(rpc_transport.serve('manila-things', 'host', [things]))
    with pytest.raises(Exception, match='sync'):
        rpc_transport.client(
            'manila-things', 'host', namespace='thing_care', version='1.3'
        ).call(ctx, 'sync', {'thing_id': 't'}, timeout=5)
    assert things.calls == []


def test_handlers_are_bound_and_have_their_hooks():
    things = Things()
    handlers = contract.endpoint_handlers(things)
    extend = handlers['thing_care.extend']
    extend.run('job', instance_id='i', new_size=2)
    assert things.calls == [('job', 'i', 2, False)]
    assert extend.prepare('session', 'job') == 'prepared'
    assert extend.dropped('session', 'job') == 'dropped'
    assert extend.failed('session', 'job', ValueError()) is True
    sync = handlers['thing_care.sync']
    assert (sync.prepare, sync.dropped, sync.failed) == (None, None, None)
    assert sync.durable.one_per == 'thing_id'


def test_declared_hooks_prepare_and_end_the_work():
    class Endpoint(Things):
        @contract.work(expects=('one', 'two'), load=len, failed='end', dropped='free')
        def sync(self, job, thing_id): ...

        def expect(self, session, job, *statuses, find=None):
            return (session, job, statuses, find)

        def end(self, session, job, error):
            return f'ended by {error}'

        def free(self, session, job):
            return f'freed {job}'

    handlers = contract.endpoint_handlers(implements(ThingCareRpc)(Endpoint)())
    sync = handlers['thing_care.sync']
    assert sync.prepare('session', 'job') == ('session', 'job', ('one', 'two'), len)
    assert sync.failed('session', 'job', 'this') == 'ended by this'
    assert sync.dropped('session', 'job') == 'freed job'


def test_work_that_expects_a_status_at_rest_is_refused():
    class Endpoint:
        @contract.work(expects='at_rest')
        def extend(self, job, instance_id, new_size, force=False): ...

        def expect(self, session, job, status): ...

        def sync(self, job, thing_id): ...

        def check(self, ctx, instance_id, options=None): ...

    with pytest.raises(TypeError, match='expects at_rest, in which no'):
        implements(ThingCareRpc)(Endpoint)


class PairRpc(Contract):
    topic, version = 't', '1.0'

    @durable()
    def work(self, ctx, instance_id, force=False): ...

    @call()
    def ask(self, ctx, question): ...


class Lacks:
    def work(self, job, instance_id, force=False): ...


class FirstIsNotJob(Lacks):
    def work(self, ctx, instance_id, force=False): ...

    def ask(self, ctx, question): ...


class OtherName(Lacks):
    def ask(self, ctx, riddle): ...


class OtherOrder(Lacks):
    def work(self, job, force=False, instance_id=None): ...

    def ask(self, ctx, question): ...


class OtherDefault(Lacks):
    def work(self, job, instance_id, force=True): ...

    def ask(self, ctx, question): ...


class HookOfACall(Lacks):
    def ask(self, ctx, question): ...

    def prepare_ask(self, session, job): ...


class HookTakesTooLittle(Lacks):
    def ask(self, ctx, question): ...

    def failed_work(self, session, job): ...


class ExpectsWithoutExpect(Lacks):
    def ask(self, ctx, question): ...

    @contract.work(expects='status')
    def work(self, job, instance_id, force=False): ...


class FailsWithoutMethod(Lacks):
    def ask(self, ctx, question): ...

    @contract.work(failed='end')
    def work(self, job, instance_id, force=False): ...


class DropsTwice(Lacks):
    def ask(self, ctx, question): ...

    @contract.work(dropped='free')
    def work(self, job, instance_id, force=False): ...

    def free(self, session, job): ...

    def dropped_work(self, session, job): ...


class PreparesTwice(ExpectsWithoutExpect):
    def expect(self, session, job, status): ...

    def prepare_work(self, session, job): ...


@pytest.mark.parametrize(
    'endpoint',
    [
        ExpectsWithoutExpect,
        DropsTwice,
        FailsWithoutMethod,
        PreparesTwice,
        Lacks,
        FirstIsNotJob,
        OtherName,
        OtherOrder,
        OtherDefault,
        HookOfACall,
        HookTakesTooLittle,
    ],
)
def test_endpoint_that_breaks_the_contract_is_refused(endpoint):
    with pytest.raises(TypeError, match=endpoint.__name__):
        implements(PairRpc)(endpoint)
