"""Entry points are found by name."""

import pytest

from manila_lite import plugins
from tests.support import entry_points

SPACE = 'manila_lite.tests.plugins'


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    entry_points.install(
        monkeypatch,
        tmp_path,
        f"""\
        [{SPACE}]
        text = textwrap:dedent
        no_module = no_such_module:X
        no_name = textwrap:NoSuchName
        """,
    )


def test_an_entry_point_is_what_it_names():
    from textwrap import dedent

    assert plugins.load(SPACE, 'text') is dedent


def test_names_are_sorted():
    assert plugins.names(SPACE) == ['no_module', 'no_name', 'text']
    assert plugins.names('nothing.there') == []


@pytest.mark.parametrize(
    'name, reason',
    [
        ('other', 'known are no_module, no_name, text'),
        ('no_module', "No module named 'no_such_module'"),
        ('no_name', 'NoSuchName'),
    ],
)
def test_an_unusable_plugin_is_refused_with_a_reason(name, reason):
    with pytest.raises(plugins.UnusablePlugin, match=reason):
        plugins.load(SPACE, name)
