#!/usr/bin/env python3
"""Make the pictures of the page /ui in the documentation.

A service with an example estate runs in a temporary directory and is looked
at in Chromium, which tools/install-browser installs. Each picture is made in
the light and in the dark scheme.
"""

import argparse
import base64
import pathlib
import struct
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support import chromium  # noqa: E402
from tests.support.installation import Installation  # noqa: E402

WIDTH, HEIGHT = 1180, 760
HOST = 'node-1'
TYPE = {'snapshot_support': 'True', 'revert_to_snapshot_support': 'True'}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        'to', nargs='?', type=pathlib.Path, default=ROOT / 'doc/source/_static/page'
    )
    to = parser.parse_args().to
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        service = build_service(pathlib.Path(folder))
        try:
            service.start()
            paths = build_estate(service)
            with chromium.started(pathlib.Path(folder)) as browser:
                take_pictures(browser, service, paths, to)
        finally:
            service.kill()
            service.close()


def build_service(folder: pathlib.Path) -> Installation:
    """Return a service whose back end `slow` takes long to extend."""
    slow = {'dummy_driver_driver_methods_delays': 'extend_share:3600'}
    service = Installation(folder / 'service', options='default_share_type = default\n')
    service._text = service._text.replace(service.host, HOST)
    service.host = HOST
    service.configure({'fast': {}, 'slow': slow, 'spare': {}})
    return service


def build_estate(service: Installation) -> dict[str, str]:
    """Create resources in all conditions; return the paths to look at."""
    user = service.rest('research')
    user.make_default_type(**TYPE)
    for backend in service.backends:
        user.create_type(backend, share_backend_name=backend, **TYPE)
    user.create_type('archive', share_backend_name='archive')
    for name, size in (('home', 40), ('builds', 120), ('models', 300)):
        user.create_available(
            name=name, share_proto='NFS', size=size, share_type='fast'
        )
    share = user.create_available(
        name='results', share_proto='NFS', size=80, share_type='fast'
    )['id']
    for access_to, level in (('10.20.0.0/16', 'rw'), ('10.30.1.7', 'ro')):
        rule = {'access_type': 'ip', 'access_to': access_to}
        rule['access_level'] = level
        user.act(share, 'allow_access', rule, expect=200)
    user.wait_at_rest(share)
    snapshot = {'share_id': share, 'name': 'before the update'}
    user.request('POST', '/snapshots', {'snapshot': snapshot}, expect=202)
    for number in (1, 2):
        busy = user.create_available(
            name=f'logs-{number}', share_proto='NFS', size=10, share_type='slow'
        )
        user.act(busy['id'], 'extend', {'new_size': 20})
    moving = user.create_available(
        name='scans', share_proto='NFS', size=60, share_type='fast'
    )['id']
    user.act(
        moving,
        'migration_start',
        {
            'host': f'{HOST}@spare#pool',
            'writable': True,
            'nondisruptive': False,
            'preserve_metadata': True,
            'preserve_snapshots': False,
            'new_share_type_id': type_id(user, 'spare'),
        },
    )
    user.request(
        'POST',
        '/shares',
        {
            'share': {
                'name': 'old mail',
                'size': 1,
                'share_proto': 'NFS',
                'share_type': 'archive',
            }
        },
    )
    return {
        'overview': '/ui/',
        'in-flight': '/ui/in-flight',
        'share': f'/ui/shares/{share}',
        'migrations': '/ui/migrations',
        'capacity': '/ui/capacity',
    }


def type_id(user, name: str) -> str:
    return next(
        one['id'] for one in user.get('/types')['share_types'] if one['name'] == name
    )


def take_pictures(browser, service, paths, to: pathlib.Path) -> None:
    browser.driver.set_window_size(WIDTH, HEIGHT)
    browser.open(f'{service.root}/ui/')
    browser.submit('#user')
    browser.see('archive')  # the failure
    browser.open(f'{service.root}/ui/migrations')
    browser.see('An administrator has to complete')
    for name, path in paths.items():
        browser.open(f'{service.root}{path}')
        for scheme in ('light', 'dark'):
            browser.prefer(scheme)
            found = browser.driver.execute_cdp_cmd(
                'Page.captureScreenshot', {'format': 'png'}
            )
            small = with_palette(base64.b64decode(found['data']))
            (to / f'{name}-{scheme}.png').write_bytes(small)


# Pages have few colours: with a palette a picture takes a third.


def with_palette(png: bytes) -> bytes:
    """Return a picture with at most 256 colours, those nearest to its own."""
    width, height, pixels = decoded(png)
    counts: dict[bytes, int] = {}
    for at in range(0, len(pixels), 3):
        colour = pixels[at : at + 3]
        counts[colour] = counts.get(colour, 0) + 1
    palette = sorted(counts, key=lambda one: -counts[one])[:256]
    number = {colour: place for place, colour in enumerate(palette)}
    for colour in counts:
        if colour not in number:
            number[colour] = min(
                range(len(palette)), key=lambda place: distance(palette[place], colour)
            )
    rows = (
        b'\0'
        + bytes(number[pixels[at : at + 3]] for at in range(row, row + 3 * width, 3))
        for row in range(0, len(pixels), 3 * width)
    )
    return b''.join(
        [
            png[:8],
            chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 3, 0, 0, 0)),
            chunk(b'PLTE', b''.join(palette)),
            chunk(b'IDAT', zlib.compress(b''.join(rows), 9)),
            chunk(b'IEND', b''),
        ]
    )


def distance(one: bytes, other: bytes) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def chunk(kind: bytes, data: bytes) -> bytes:
    checked = kind + data
    return (
        struct.pack('>I', len(data)) + checked + struct.pack('>I', zlib.crc32(checked))
    )


def decoded(png: bytes) -> tuple[int, int, bytes]:
    """Return width, height and the red, green and blue of each pixel."""
    data, at = b'', 8
    while at < len(png):
        (length,) = struct.unpack_from('>I', png, at)
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        if kind == b'IHDR':
            width, height, depth, colours = struct.unpack_from('>IIBB', content)
        elif kind == b'IDAT':
            data += content
        at += length + 12
    channels = {2: 3, 6: 4}[colours]
    if depth != 8:
        raise ValueError(f'a picture of {depth} bits')
    lines = zlib.decompress(data)
    stride = width * channels
    above, found = bytes(stride), bytearray()
    for start in range(0, len(lines), stride + 1):
        line = bytearray(lines[start + 1 : start + 1 + stride])
        unfilter(lines[start], line, above, channels)
        above = bytes(line)
        for place in range(0, stride, channels):
            found += line[place : place + 3]
    return width, height, bytes(found)


def unfilter(kind: int, line: bytearray, above: bytes, step: int) -> None:
    for place in range(len(line)):
        left = line[place - step] if place >= step else 0
        corner = above[place - step] if place >= step else 0
        up = above[place]
        guess = (0, left, up, (left + up) // 2, 0)[kind]
        if kind == 4:
            whole = left + up - corner
            guess = min((left, up, corner), key=lambda one: abs(whole - one))
        line[place] = (line[place] + guess) & 255


if __name__ == '__main__':
    main()
