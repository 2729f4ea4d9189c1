"""Revoked tokens are recorded until they would have expired."""

import logging

from manila_lite.api.auth.tokens import RevokedTokens


def test_revoked_tokens_are_known_until_they_expire(tmp_path):
    path = tmp_path / 'new' / 'revoked'
    now = [100]
    revoked = RevokedTokens(str(path), clock=lambda: now[0])
    assert 'a' not in revoked
    revoked.add('a', 110)
    revoked.add('b', 120)
    assert 'a' in revoked
    assert 'b' in RevokedTokens(str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    now[0] = 111
    revoked.add('c', 130)
    assert path.read_text() == 'b:120\nc:130\n'


def test_lines_of_others_are_ignored(tmp_path):
    path = tmp_path / 'revoked'
    path.write_text('x\n\na:b\ngood:5\n')
    revoked = RevokedTokens(str(path), clock=lambda: 0)
    assert 'good' in revoked
    assert 'x' not in revoked
    assert 'a' not in revoked


def test_file_that_cannot_be_read_keeps_what_is_known(tmp_path, caplog):
    path = tmp_path / 'revoked'
    revoked = RevokedTokens(str(path), clock=lambda: 0)
    revoked.add('a', 5)
    assert 'a' in revoked
    path.unlink()
    path.mkdir()
    with caplog.at_level(logging.ERROR):
        assert 'a' in revoked
    assert 'Cannot read the revoked tokens' in caplog.text
