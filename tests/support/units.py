"""The unit files of systemd, and the drop-in for btrfs back ends."""

import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parents[2] / 'etc/manila_lite/systemd'
SHARE = FOLDER / 'manila-lite-share.service'
BTRFS = FOLDER / 'manila-lite-share.service.d' / 'btrfs.conf'


def settings(unit: pathlib.Path, name: str) -> list[str]:
    """Return the values of a setting; an empty one clears those before."""
    found: list[str] = []
    for value in re.findall(rf'^{name}=(.*)$', unit.read_text(), re.M):
        found = [*found, *value.split()] if value else []
    return found
