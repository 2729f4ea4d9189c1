"""Our options match the published table."""

import pathlib
import re

from oslo_config import cfg
import pytest

from manila_lite import conf
from manila_lite.conf import ignored
from tests.support import reference

AREAS = {
    'api',
    'core',
    'coordination',
    'database',
    'messages',
    'quota',
    'scheduler',
    'service',
    'share manager',
    'share driver common',
    'wsgi',
    'dummy driver (tests)',
    'network',
    'network standalone plugin',
}

KINDS = {
    'int': cfg.IntOpt,
    'float': cfg.FloatOpt,
    'bool': cfg.BoolOpt,
    'str': cfg.StrOpt,
    'list': cfg.ListOpt,
    'dict': cfg.DictOpt,
    'port': cfg.PortOpt,
    'host address': cfg.HostAddressOpt,
}

# Differences on purpose: drivers of Manila cannot be defaults, and
# authentication by a users file is an addition.
DEFAULTS = {'share_driver': None, 'network_api_class': 'standalone'}
CHOICES = {'auth_strategy': {'http_basic'}}


def published():
    # Options of back end sections, which fall back to DEFAULT.
    return {
        (row['group'].removeprefix('backend or '), row['name']): row
        for row in reference.table('config-options.csv')
        if row['area'] in AREAS
    }


def ours():
    """Our options under the group names of the table."""
    found = {}
    for group, opts in conf.list_opts():
        where = 'DEFAULT' if group is None else group.name
        if where == 'my_backend':
            where = 'backend section'
        for opt in opts:
            # Published in DEFAULT, and read in each back end's section.
            row_group = 'DEFAULT' if opt.name == 'share_driver' else where
            found[row_group, opt.name] = opt
    return found


def common():
    rows, opts = published(), ours()
    return [(rows[key], opts[key]) for key in rows if key in opts]


def default_of(row, kind):
    text = row['default']
    if kind in ('list', 'dict') and not text:
        return None
    if kind == 'list':
        return text.split(',')
    if kind == 'dict':
        return dict(item.split(':') for item in text.split(','))
    if not text:
        return None
    return {
        'int': int,
        'port': int,
        'float': float,
        'str': str,
        'bool': lambda word: word == 'True',
        'host address': str,
    }[kind](text)


def test_every_published_option_is_offered_or_ignored_for_a_reason():
    offered = {opt.name for _, opts in conf.list_opts() for opt in opts}
    for row in reference.table('config-options.csv'):
        if row['area'] != 'library' and row['name'] not in offered:
            group = row['group'].removeprefix('backend or ')
            assert ignored.reason(
                group, row['name'], is_backend=group == 'backend section'
            ), row


TESTS = ''.join(
    path.read_text()
    for path in pathlib.Path(__file__).parents[2].rglob('*.py')
    if path.name not in (pathlib.Path(__file__).name, 'differences.py')
).replace('\\n', ' ')

SET_BY_PART = {'standalone_network_plugin_mtu': 'mtu=9000'}
"""What tests say that put the name of an option together."""


def test_every_published_option_that_is_offered_has_a_test_that_names_it():
    offered = {opt.name for _, opts in conf.list_opts() for opt in opts}
    named = set(re.findall(r'\w+', TESTS))
    named |= {name for name, text in SET_BY_PART.items() if text in TESTS}
    published_names = {row['name'] for row in reference.table('config-options.csv')}
    assert (published_names & offered) - named == set()


def test_no_option_is_both_offered_and_ignored():
    def section(group):
        return (
            'DEFAULT'
            if group is None
            else group.name.replace('my_backend', ignored.BACKEND)
        )

    offered = {
        (section(group), opt.name) for group, opts in conf.list_opts() for opt in opts
    }
    assert not offered & set(ignored.OPTIONS)
    assert not {group for group, _ in offered} & set(ignored.SECTIONS)


def test_options_with_published_names_are_in_their_published_groups():
    names = {name for _, name in published()}
    assert {key for key in ours() if key[1] in names} <= set(published())


def test_types_are_the_published_ones():
    wrong = [
        row['name'] for row, opt in common() if type(opt) is not KINDS[row['type']]
    ]
    assert wrong == []


def test_defaults_are_the_published_ones():
    wrong = []
    for row, opt in common():
        if row['default'].startswith('('):  # depends on the machine
            continue
        expected = DEFAULTS.get(row['name'], default_of(row, row['type']))
        if (opt.default or None) != (expected or None) or (
            row['type'] not in ('list', 'dict') and opt.default != expected
        ):
            wrong.append((row['name'], opt.default, expected))
    assert wrong == []


def test_bounds_and_choices_are_the_published_ones():
    wrong = []
    for row, opt in common():
        bounds = (getattr(opt.type, 'min', None), getattr(opt.type, 'max', None))
        choices = set(getattr(opt.type, 'choices', None) or ())
        expected = expected_bounds(row['constraints'])
        words = expected_choices(row['constraints'])
        if bounds != expected or choices != words | CHOICES.get(row['name'], set()):
            wrong.append((row['name'], bounds, choices))
    assert wrong == []


def expected_bounds(text):
    if not text.startswith('range '):
        return None, None
    low, _, high = text.removeprefix('range ').rpartition('..')
    low = low.rstrip('.')
    return (float(low) if low else None), (float(high) if high else None)


def expected_choices(text):
    if not text.startswith('one of '):
        return set()
    return set(text.removeprefix('one of ').split('|'))


def test_deprecated_names_are_the_published_ones():
    wrong = []
    for row, opt in common():
        names = {f'{old.group}/{old.name}' for old in opt.deprecated_opts}
        if names != set(filter(None, row['deprecated_names'].split(';'))):
            wrong.append((row['name'], names))
    assert wrong == []


@pytest.mark.parametrize(
    'constraint, expected',
    [
        ('', (None, None)),
        ('range 300..', (300, None)),
        ('range 0..65535', (0, 65535)),
        ('range 1.0..', (1.0, None)),
    ],
)
def test_bounds_of_the_table_are_parsed(constraint, expected):
    assert expected_bounds(constraint) == expected
