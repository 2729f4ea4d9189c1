"""Our options match the published table."""

from oslo_config import cfg
import pytest

from manila_lite import conf
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

NOT_OFFERED = {
    'names a class of Manila': {
        'data_manager',
        'db_backend',
        'db_driver',
        'driver',
        'hook_drivers',
        'osapi_share_ext_list',
        'osapi_share_extension',
        'scheduler_driver',
        'scheduler_host_manager',
        'scheduler_manager',
        'share_api_class',
        'share_manager',
    },
    'belongs to a part that does not exist here': {
        'api_rate_limit',
        'fatal_exception_format_errors',
        'max_gigabytes',
        'monkey_patch',
        'monkey_patch_modules',
        'num_shell_tries',
        'osapi_share_workers',
        'response_validation',
        'rootwrap_config',
        'scheduler_json_config_location',
        'share_service_inithost_offload',
    },
    'fixed by the contracts': {'data_topic', 'scheduler_topic', 'share_topic'},
    'usage needs no recount and no reservation expires': {
        'max_age',
        'reservation_expire',
        'until_refresh',
    },
    'done by [oslo_middleware] enable_proxy_headers_parsing': {
        'use_forwarded_for'
    },
    'comes with its capability': {
        'check_for_expired_transfers',
        'data_manager_backup_supported_share_protocols',
        'default_share_group_type',
        'driver_backup_continue_update_interval',
        'driver_restore_continue_update_interval',
        'enable_gathering_share_usage_size',
        'migration_driver_continue_update_interval',
        'migration_ignore_files',
        'protocol_access_mapping',
        'scheduler_default_share_group_filters',
        'server_migration_extend_neutron_network',
        'share_backup_name_template',
        'share_mount_template',
        'share_unmount_template',
        'share_usage_size_update_interval',
        'transfer_retention_time',
        'unmanage_remove_access_rules',
    },
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


def test_every_published_option_is_offered_or_omitted_for_a_reason():
    omitted = set().union(*NOT_OFFERED.values())
    names = {name for _, name in published()}
    offered = {opt.name for _, opt in common()}
    assert names - offered == omitted
    assert len(omitted) == sum(map(len, NOT_OFFERED.values()))


def test_options_with_published_names_are_in_their_published_groups():
    names = {name for _, name in published()}
    assert {key for key in ours() if key[1] in names} <= set(published())


def test_types_are_the_published_ones():
    wrong = [
        row['name']
        for row, opt in common()
        if type(opt) is not KINDS[row['type']]
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
        bounds = (
            getattr(opt.type, 'min', None),
            getattr(opt.type, 'max', None),
        )
        choices = set(getattr(opt.type, 'choices', None) or ())
        expected = expected_bounds(row['constraints'])
        words = expected_choices(row['constraints'])
        if bounds != expected or choices != words | CHOICES.get(
            row['name'], set()
        ):
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
