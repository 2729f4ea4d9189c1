"""Values that options cannot have, in words for those who have written them.

oslo.config says what its code met; an operator needs the option, its section
and the file.
"""

from collections.abc import Iterator
import contextlib
import io
import pathlib
import re
import sys

from oslo_config import cfg

_OF_VALUES = (
    cfg.ConfigSourceValueError,
    cfg.TemplateSubstitutionError,
    cfg.NoSuchOptError,  # in a template, too
)
_REWORDED = (
    (r'invalid literal for int\(\) with base 10: (.*)', r'\1 is no integer'),
    (r'could not convert string to float: (.*)', r'\1 is no number'),
    (r'Unexpected boolean value (.*)', r'\1 is neither true nor false'),
    (r'Should be (.*)', r'it should be \1'),
    (r'Value should be (.*)', r'it should be \1'),
    (r'Value (.*)', r'\1'),
    (r'Valid values are \[(.*)\], but found (.*)', r'\2 is none of \1'),
)


_NO_OPTION = 'names no option after $; write $$ for the sign itself'
_EXIT = re.compile(r'^argument --(\w+): Invalid Boolean value: (.*)$', re.M)


class WrongValue(cfg.Error):
    """A file has a value that its option cannot have."""


def find(conf: cfg.ConfigOpts, section: str | None = None) -> list[str]:
    """Describe all wrong values of registered options, or of one section."""
    found = [
        (_find_file(conf, group, name), group, name, error)
        for group, name, error in _errors(conf, section)
    ]
    # Defaults may be made of a value that a file has.
    written = [one for one in found if one[0]]
    return [_describe_value(*one) for one in written or found]


def describe(
    conf: cfg.ConfigOpts, error: BaseException, section: str | None = None
) -> str:
    """Return the text of an error; of wrong values, in better words.

    Options of libraries are registered, and read, when they are needed. Those
    of the section come first, if there are any.
    """
    if not isinstance(error, _OF_VALUES):
        return str(error)
    return '; '.join(find(conf, section) or find(conf)) or str(error)


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raise WrongValue where oslo.config would print something and exit.

    It does so if a file has a wrong value of an option that the command line
    has as well, such as `debug`. Wrong arguments are left to it.
    """
    stderr = sys.stderr
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        try:
            yield
        except cfg.NoSuchOptError as error:
            raise WrongValue(f'a value with ${error.opt_name} {_NO_OPTION}') from error
        except SystemExit:
            text = printed.getvalue()
            found = _EXIT.search(text)
            if found:
                raise WrongValue(
                    f'option {found[1]} in section [DEFAULT]: {found[2]!r} is '
                    'neither true nor false'
                ) from None
            stderr.write(text)
            raise


def _errors(
    conf: cfg.ConfigOpts, section: str | None
) -> Iterator[tuple[str, str, Exception]]:
    """Read registered options; yield where that fails, and the error.

    They are all options, or those of the group of a section.
    """
    for name in conf if section is None else {section} & {*conf}:
        try:
            value = conf[name]
        except (ValueError, cfg.Error) as error:
            yield 'DEFAULT', name, error
            continue
        if not isinstance(value, cfg.ConfigOpts.GroupAttr):
            continue
        for option in value:
            try:
                value[option]
            except (ValueError, cfg.Error) as error:
                yield name, option, error


def _describe_value(path: str | None, section: str, name: str, error: Exception) -> str:
    # oslo.config raises its error while it handles that of the value.
    cause = error.__context__ or error
    reason = (
        _reworded(str(cause)) if isinstance(error, ValueError) else f'it {_NO_OPTION}'
    )
    place = f'{path}: ' if path else ''
    return f'{place}option {name} in section [{section}]: {reason}'


def _reworded(text: str) -> str:
    for pattern, words in _REWORDED:
        if re.fullmatch(pattern, text):
            return re.sub(pattern, words, text)
    return text


Sections = dict[str, dict[str, list[str]]]


def sections(conf: cfg.ConfigOpts) -> Iterator[tuple[str, Sections]]:
    """Yield the path of each file, and its values by section and name."""
    folders = [pathlib.Path(path) for path in conf.config_dir or ()]
    more = [str(one) for path in folders for one in sorted(path.glob('*.conf'))]
    for path in [*conf.config_file, *more]:
        yield path, _parse(path)


_remembered: dict[str, Sections] = {}


def remember_sections(conf: cfg.ConfigOpts) -> None:
    """Read the files for `sections`, before this process may no longer do so."""
    _remembered.update(sections(conf))


def _parse(path: str) -> Sections:
    found: Sections = {}
    try:
        cfg.ConfigParser(path, found).parse()
    except PermissionError:
        if path not in _remembered:
            raise
        return _remembered[path]
    return found


def _find_file(conf: cfg.ConfigOpts, section: str, name: str) -> str | None:
    """Return the path of the last file that sets an option, if any."""
    path = None
    for one, found in sections(conf):
        names = {key.replace('-', '_') for key in found.get(section, ())}
        if name in names:
            path = one
    return path
