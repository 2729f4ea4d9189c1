"""Distributions that are installed for one test."""

import pathlib
import textwrap

from stevedore import extension


def install(monkeypatch, folder: pathlib.Path, text: str) -> None:
    """Install a distribution with these entry points, until the test ends.

    stevedore remembers for a process what is installed.
    """
    info = folder / 'third_party-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Name: third-party\nVersion: 1.0\n')
    (info / 'entry_points.txt').write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(extension.ExtensionManager, 'ENTRY_POINT_CACHE', {})
