"""Verification of passwords.

bcrypt is slow on purpose, so a correct password is cached for some minutes.
The cache does not contain the password but an HMAC of it, with a key that
exists only in this process. All other passwords must pass the limits of
`throttle` first.
"""

from collections.abc import Callable
from concurrent import futures
import hmac
import secrets
import threading
import time

from manila_lite.api.auth import throttle, users
from manila_lite.api.auth.caller import Run, run_here
from manila_lite.api.auth.users import CurrentUsers

# Seconds for which a correct password is cached.
_CACHE_TIME = 300


class PasswordVerifier:
    """Verifies the passwords of users."""

    def __init__(
        self,
        current_users: CurrentUsers,
        clock: Callable[[], float] = time.monotonic,
        run: Run = run_here,
    ):
        self._users = current_users
        self._clock = clock
        self._run = run
        self._key = secrets.token_bytes(32)
        self._verified: dict[str, tuple[bytes, float]] = {}  # until when
        self._throttle = throttle.SignInThrottle(clock)
        self._slots = throttle.HashSlots()
        self._in_progress: dict[bytes, futures.Future[bool]] = {}
        self._lock = threading.Lock()

    def user(self, name: str, password: bytes, address: str = '') -> users.User | None:
        """Return the user with this name and password, or None.

        Raises TooManySignIns if the password cannot be verified now.
        """
        found = self._users.by_name().get(name)
        return self.verified(found, name, password, address)

    def verified(
        self, user: users.User | None, name: str, password: bytes, address: str = ''
    ) -> users.User | None:
        """Return the user if the password is right, else None.

        Without a user it takes as long, and failures count for the name.
        """
        if user and self._is_cached(user, password):
            return user
        self._throttle.check(name, address)
        cost = users.highest_cost(self._users.by_name().values())
        right = self._verify_once(user, name, password, cost, address)
        if not right or user is None:
            self._throttle.failed(name, address)
            return None
        self._throttle.succeeded(name, address)
        return user

    def _verify_once(
        self,
        user: users.User | None,
        name: str,
        password: bytes,
        cost: int,
        address: str,
    ) -> bool:
        """Verify a password; simultaneous requests share one computation."""
        key = self._digest(user.hash if user else name, password)
        with self._lock:
            running = self._in_progress.get(key)
            if running is None:
                mine = self._in_progress[key] = futures.Future()
        if running:
            with self._slots.place(address):
                return running.result()
        try:
            with self._slots.slot(address):
                right = self._run(users.verify_password, user, password, cost)
            if right and user:
                expires_at = self._clock() + _CACHE_TIME
                self._verified[name] = (key, expires_at)
            mine.set_result(right)
            return right
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._in_progress[key]

    def _is_cached(self, user: users.User, password: bytes) -> bool:
        """Whether the password was right a short time ago.

        While it is verified again, other requests with it do not wait.
        """
        known, expires_at = self._verified.get(user.name, (b'', 0))
        digest = self._digest(user.hash, password)
        return hmac.compare_digest(known, digest) and (
            self._clock() < expires_at or digest in self._in_progress
        )

    def _digest(self, hash_or_name: str, password: bytes) -> bytes:
        # Includes the hash, so a new password invalidates the old digest.
        return hmac.digest(
            self._key, hash_or_name.encode() + b'\0' + password, 'sha256'
        )
