"""Mask secrets in texts of drivers and libraries.

Error texts are kept with work, shown to administrators and logged. What they
contain is up to the drivers, and often is the command or the request that
failed, with its password.
"""

from collections.abc import Iterable, Mapping
import contextlib
import re
import typing
import urllib.parse

from oslo_config import cfg
from oslo_utils import strutils

MASK = '***'

MAX_LENGTH = 65536
"""Longer texts are cut; the time for some patterns grows with the square."""

_SHORT = 8
"""Shorter secrets are masked as whole words only."""

# The password in a URL, which libraries accept with an unquoted @ or /, and
# in each part of a list of brokers.
# Bounded: the time would grow with the square of the length.
_URL_PASSWORD = re.compile(r"""((?:://|,)[^:/@,\s"']{0,255}:)[^,\s"']{0,1024}@""")
_PRIVATE_KEY = re.compile(
    r'(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END|\Z)', re.DOTALL
)
_CREDENTIALS = re.compile(
    r'(\bauthorization["\']?\s*[:=]\s*["\']?(?:\w+\s+)?'
    r'|\bbearer\s+(?=[\w+/=.~-]{20}))[^\s"\',;]+',
    re.I,
)
_SECRET_NAME = (
    r'(?:passw(?:or)?d|passphrase|passcode|secret|token|credentials?'
    r'|(?:api|access|private|secret|auth|encryption)[_-]?key)'
)
_ASSIGNMENT = re.compile(
    rf'({_SECRET_NAME}["\']?\s*(?:=>|[=:])\s*)'
    r'("[^"]*"?|\'[^\']*\'?|[^\s"\',;&)\]}]+)',
    re.I,
)
_IS_SECRET_NAME = re.compile(rf'[\w-]*{_SECRET_NAME}', re.I).fullmatch
_HINTS = (
    'pass',
    'pswd',
    'secret',
    'token',
    'credential',
    'key',
    'cookie',
    'authorization',
    'bearer',
    'configdrive',
    'fsid',
    'kek',
    'hashsuffix',
)
"""Texts without any of these words need no closer look."""


class _KnownSecrets:
    """Values that are masked wherever they appear."""

    def __init__(self) -> None:
        self._values: frozenset[str] = frozenset()
        self.pattern: re.Pattern | None = None

    def add(self, values: Iterable[str]) -> None:
        found = self._values | {value for value in values if value.strip()}
        if found != self._values:
            self._values = found
            # A long value may contain a short one.
            self.pattern = re.compile(
                '|'.join(map(_pattern_of, sorted(found, key=len, reverse=True)))
            )


_known = _KnownSecrets()


def mask(text: str) -> str:
    """Return the text without passwords, tokens, keys and known secrets."""
    # A secret that is cut would not be recognized.
    text = mask_known(text[: 2 * MAX_LENGTH])
    if len(text) > MAX_LENGTH:
        text = text[:MAX_LENGTH] + '…'
    if not _has_hint(text):
        return text
    text = _PRIVATE_KEY.sub(rf'\1{MASK}\2', text)
    text = _CREDENTIALS.sub(rf'\1{MASK}', text)
    # Before the library, whose patterns mask the following texts, too.
    text = _ASSIGNMENT.sub(rf'\1{MASK}', text)
    return strutils.mask_password(text, MASK)


def mask_known(text: str) -> str:
    """Return the text without known secrets and passwords in URLs.

    Of texts of our own, which may well say what a password must be.
    """
    if _known.pattern:
        text = _known.pattern.sub(MASK, text)
    if '@' in text:
        text = _URL_PASSWORD.sub(rf'\1{MASK}@', text)
    return text


def _has_hint(text: str) -> bool:
    lowered = text.lower()
    return any(hint in lowered for hint in _HINTS)


def mask_values(value: object) -> typing.Any:
    """Return a document with all texts in it masked; sequences as lists.

    What is below a key with the name of a secret is masked as a whole,
    except for booleans, which say whether there is one.
    """
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {
            key: MASK
            if item and not isinstance(item, bool) and _is_secret_name(key)
            else mask_values(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [mask_values(item) for item in value]
    return value


def _is_secret_name(key: object) -> bool:
    return isinstance(key, str) and _has_hint(key) and _IS_SECRET_NAME(key) is not None


def remember_secrets(values: Iterable[str]) -> None:
    """Mask these values from now on; those of options, for example."""
    _known.add(values)


def remember_secret_options(conf: cfg.ConfigOpts) -> None:
    """Mask the values of all options that are declared as secret.

    Of a URL only the password is a secret. Libraries and drivers register
    options when they are built, so call it again then.
    """
    remember_secrets(
        secret for value in _secret_values(conf) for secret in _secrets_in(value)
    )


def count_options(conf: cfg.ConfigOpts) -> int:
    """Return how many options are registered, all of which may be secret."""
    return len(conf._opts) + sum(len(group._opts) for group in conf._groups.values())


def _secret_values(conf: cfg.ConfigOpts) -> Iterable[typing.Any]:
    # oslo.config tells only by its attributes which options are secret.
    sections: list[tuple[Mapping, Mapping]] = [(conf, conf._opts)]
    sections += [(conf[name], group._opts) for name, group in conf._groups.items()]
    for values, options in sections:
        for name, registered in options.items():
            # An invalid value is reported where the option is read.
            with contextlib.suppress(cfg.Error):
                if registered['opt'].secret:
                    yield values[name]


def _secrets_in(value: object) -> Iterable[str]:
    """Yield the secret texts in the value of an option."""
    if isinstance(value, Mapping):
        value = value.values()
    if not isinstance(value, str):
        for item in value if isinstance(value, Iterable) else ():
            yield from _secrets_in(item)
    elif '://' in value:
        for password in re.findall(r':([^:@/,\s]+)@', value):
            yield from {password, urllib.parse.unquote(password)}
    else:
        yield value


def _pattern_of(secret: str) -> str:
    variants = {secret, urllib.parse.quote(secret, safe='')}
    pattern = '|'.join(map(re.escape, sorted(variants, key=len, reverse=True)))
    return pattern if len(secret) >= _SHORT else rf'(?<!\w)(?:{pattern})(?!\w)'
