"""Which tokens are valid, for whom and until when."""

import base64
import dataclasses
import json
import time

import jwt
import pytest

from manila_lite.api.auth import users
from manila_lite.api.auth.tokens import MAX_LENGTH, Tokens
from manila_lite.api.auth.users import CurrentUsers

KEY = b'k' * 32


@pytest.fixture
def current(file):
    return CurrentUsers(str(file))


@pytest.fixture
def tokens(current):
    return Tokens(KEY, 3600, current)


@pytest.fixture
def alice(current):
    return current.by_name()['alice']


def rewrite(file, old, new):
    """Change a line of the file of users."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def part(content):
    """Return a part of a token."""
    text = content if isinstance(content, bytes) else json.dumps(content)
    raw = text if isinstance(text, bytes) else text.encode()
    return base64.urlsafe_b64encode(raw).rstrip(b'=').decode()


def test_token_stands_for_its_user(tokens, alice):
    issued = tokens.issue(alice)
    found = tokens.find(issued.text)
    assert found == issued
    assert (found.user, found.methods) == (alice, ('password',))
    assert found.expires_at - found.issued_at == 3600


def test_every_token_is_different(tokens, alice):
    first, second = tokens.issue(alice), tokens.issue(alice)
    assert first.text != second.text
    assert first.id != second.id


def test_processes_with_one_key_accept_each_others_tokens(tokens, alice, current):
    text = tokens.issue(alice).text
    assert Tokens(KEY, 60, current).find(text).user == alice
    assert Tokens(b'x' * 32, 3600, current).find(text) is None


def test_token_expires(current, tokens, alice):
    def issued(seconds_ago):
        past = Tokens(KEY, 3600, current, clock=lambda: time.time() - seconds_ago)
        return past.issue(alice).text

    assert tokens.find(issued(3500))
    assert tokens.find(issued(3601)) is None


def test_token_that_was_valid_before_expires(current, alice):
    now = [time.time()]
    tokens = Tokens(KEY, 3600, current, clock=lambda: now[0])
    text = tokens.issue(alice).text
    assert tokens.find(text)
    now[0] += 3600
    assert tokens.find(text) is None


def test_many_tokens_are_valid_at_the_same_time(tokens, alice):
    texts = [tokens.issue(alice).text for _ in range(1200)]
    for text in (*texts, *texts[:3]):
        assert tokens.find(text).user == alice


def test_full_cache_drops_the_oldest_token_only(tokens, alice, monkeypatch):
    decoded = []

    def count(text, *args, decode=jwt.decode, **kwargs):
        decoded.append(text)
        return decode(text, *args, **kwargs)

    monkeypatch.setattr(jwt, 'decode', count)
    texts = [tokens.issue(alice).text for _ in range(1001)]
    for text in (*texts, *texts[1:]):
        assert tokens.find(text)
    assert decoded == texts
    assert tokens.find(texts[0])
    assert decoded == [*texts, texts[0]]


def test_token_of_a_process_whose_clock_is_ahead_is_valid(current, tokens, alice):
    ahead = Tokens(KEY, 3600, current, clock=lambda: time.time() + 60)
    assert tokens.find(ahead.issue(alice).text)


def test_token_for_a_token_expires_with_it(tokens, alice):
    first = tokens.issue(alice)
    parent = dataclasses.replace(first, expires_at=first.expires_at - 1000)
    second = tokens.issue(alice, parent)
    assert second.expires_at == parent.expires_at
    assert second.methods == ('token', 'password')


def test_token_of_a_removed_user_is_refused(tokens, alice, file):
    text = tokens.issue(alice).text
    users.remove(str(file), 'alice')
    assert tokens.find(text) is None
    users.add(
        str(file),
        'alice',
        'alice-secret',
        alice.user_id,
        alice.project_id,
        alice.roles,
        cost=4,
    )
    assert tokens.find(text) is None


@pytest.mark.parametrize(
    'old, new', [('id-of-alice:a1', 'id-of-alice:b2'), ('id-of-alice', 'id-of-eve')]
)
def test_token_ends_with_the_project_and_the_id_of_its_user(
    tokens, alice, file, old, new
):
    text = tokens.issue(alice).text
    rewrite(file, old, new)
    assert tokens.find(text) is None


def test_token_ends_with_the_password(tokens, alice, file):
    text = tokens.issue(alice).text
    users.remove(str(file), 'alice')
    users.add(str(file), 'alice', 'new', 'id-of-alice', 'a1', ['member'], cost=4)
    assert tokens.find(text) is None


def test_roles_are_those_of_the_file_now(tokens, alice, file):
    text = tokens.issue(alice).text
    rewrite(file, 'id-of-alice:a1:member', 'id-of-alice:a1:reader')
    assert tokens.find(text).user.all_roles == ['reader']


def test_forged_tokens_are_refused(tokens, alice):
    header, payload, signature = tokens.issue(alice).text.split('.')
    claims = json.loads(base64.urlsafe_b64decode(payload + '=='))
    forged = part(claims | {'sub': 'root'})
    unsigned = part({'alg': 'none', 'typ': 'JWT'})
    other = jwt.encode(claims, b'y' * 32, 'HS256')
    incomplete = jwt.encode({'sub': 'alice'}, KEY, 'HS256')
    for text in (
        f'{header}.{forged}.{signature}',
        f'{unsigned}.{payload}.',
        f'{header}.{payload}.',
        f'{header}.{payload}',
        other,
        incomplete,
        jwt.encode(claims, KEY, 'HS512'),
        jwt.encode(claims | {'iss': 'else'}, KEY, 'HS256'),
    ):
        assert tokens.find(text) is None, text


@pytest.mark.parametrize(
    'text',
    [
        '',
        'admin',
        'a.b.c',
        '...',
        '\xff.\xff.\xff',
        '\udc80.a.b',
        'x' * (MAX_LENGTH + 1),
        part(b'[' * 3000) + '.e30.e30',
        part(b'[]') + '.e30.e30',
        part(b'{"alg": []}') + '.e30.e30',
    ],
)
def test_other_texts_are_refused(tokens, text):
    assert tokens.find(text) is None


def test_text_of_a_token_is_not_in_its_representation(tokens, alice):
    issued = tokens.issue(alice)
    assert issued.text not in repr(issued)
    assert alice.hash not in repr(issued)
