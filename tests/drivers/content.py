"""Directory trees with every kind of entry, and their description."""

import os
import pathlib
import stat

# Together far longer than the longest path of a system call.
DEPTH, LONG_NAME = 50, 'n' * 200


def populate(top: pathlib.Path) -> None:
    """Create files of several modes, links, holes, a pipe, closed dirs."""
    (top / 'empty').mkdir()
    deep = top / 'one' / 'two' / 'three'
    deep.mkdir(parents=True)
    (deep / 'file').write_bytes(os.urandom(10_000))
    (top / 'script').write_text('#!/bin/sh\n')
    (top / 'script').chmod(0o4755)
    (top / 'sealed').write_text('read only')
    (top / 'sealed').chmod(0o400)
    os.link(top / 'script', deep / 'same-script')
    os.symlink('script', top / 'link')
    os.symlink('/nowhere/at/all', top / 'dangling')
    os.symlink('one', top / 'link-to-directory')
    os.mkfifo(top / 'pipe')
    (top / 'pipe').chmod(0o626)  # more than the usual umask allows
    with (top / 'holes').open('wb') as file:
        file.seek(5_000_000)
        file.write(b'end')
        file.truncate(9_000_000)
    (top / 'odd \udcff name\n').write_text('')
    closed = top / 'closed'
    closed.mkdir()
    (closed / 'inside').write_text('still here')
    closed.chmod(0o500)
    os.utime(closed, ns=(10**18, 10**18 + 7))
    os.utime(top / 'sealed', ns=(10**18, 10**18 + 1))
    os.utime(top / 'link', ns=(10**18, 10**18 + 3), follow_symlinks=False)


def dig(top: pathlib.Path, depth: int, name: str) -> None:
    """Create a chain of directories with a file at its end."""
    here = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    file = os.open('end', os.O_CREAT | os.O_WRONLY, dir_fd=here)
    os.write(file, b'the end')
    os.close(file)
    os.close(here)


def sketch(top: pathlib.Path) -> None:
    """Create as little as is needed for every kind of operation."""
    (top / 'directory').mkdir()
    (top / 'directory' / 'file').write_text('then')
    os.link(top / 'directory' / 'file', top / 'same-file')
    os.symlink('same-file', top / 'link')


def redraw(top: pathlib.Path) -> None:
    """Change every entry of a `sketch`."""
    (top / 'same-file').write_text('now')
    (top / 'directory').rename(top / 'link-target')
    (top / 'link').unlink()
    (top / 'link').mkdir(mode=0o500)


def set_traps(top: pathlib.Path, outside: pathlib.Path) -> None:
    """Create what root should neither follow, open nor take for an order."""
    traps = top / 'traps'
    traps.mkdir()
    (traps / 'directory').mkdir()
    (traps / 'file').write_text('inside')
    os.link(traps / 'file', traps / 'directory' / 'same-file')
    for name, to in (('directory', outside), ('file', outside / 'file')):
        os.symlink(to, traps / f'absolute-{name}')
        os.symlink('../' * 30 + str(to).lstrip('/'), traps / f'up-{name}')
    os.symlink('../../..', traps / 'pool')
    for name in (b'a\nb', b'-rf', b'$(reboot)', b'";}\nEXPORT{', b'\xff', b'\\'):
        (traps / os.fsdecode(name)).write_text('odd')
    os.mkfifo(traps / 'pipe')
    (traps / 'program').write_text('#!/bin/sh\n')
    (traps / 'program').chmod(0o6755)
    os.mknod(traps / 'null', stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(traps / 'disk', stat.S_IFBLK | 0o666, os.stat(outside).st_dev)


def damage(top: pathlib.Path) -> None:
    """Change, replace and remove parts of a populated tree."""
    (top / 'sealed').unlink()
    (top / 'sealed').mkdir()
    (top / 'sealed' / 'surprise').write_text('a directory now')
    (top / 'one' / 'two' / 'three' / 'file').write_text('overwritten')
    (top / 'one').rename(top / 'elsewhere')
    (top / 'link').unlink()
    (top / 'link').write_text('a file now')
    (top / 'script').chmod(0o600)
    (top / 'pipe').unlink()
    (top / 'new').mkdir()
    (top / 'new' / 'file').write_text('added')
    top.chmod(0o700)


def describe(top: pathlib.Path) -> dict[str, tuple]:
    """Describe everything to be preserved of a tree, for comparison."""
    described = {'.': _attributes(top)}
    names: dict[int, list[str]] = {}
    for folder, directories, files in os.walk(top):
        for name in directories + files:
            path = pathlib.Path(folder, name)
            relative = str(path.relative_to(top))
            described[relative] = (*_attributes(path), _content(path))
            names.setdefault(path.lstat().st_ino, []).append(relative)
    described['hard links'] = tuple(
        sorted(tuple(sorted(group)) for group in names.values() if len(group) > 1)
    )
    return described


def _attributes(path: pathlib.Path) -> tuple:
    status = path.lstat()
    return (
        status.st_mode,
        status.st_uid,
        status.st_gid,
        status.st_mtime_ns,
        status.st_rdev,
    )


def _content(path: pathlib.Path) -> bytes | str | None:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    return path.read_bytes() if stat.S_ISREG(mode) else None
