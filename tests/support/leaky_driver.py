"""A back end whose driver puts secrets into everything that it says."""

from typing import Any, NoReturn

from oslo_config import cfg

from manila_lite import exception
from manila_lite.share.drivers.dummy.driver import DummyDriver

SECRETS = {
    'option': 'rosebud-option',
    'password': 'swordfish-password',
    'url': 'open-sesame-url',
    'token': 'mellon-token',
    'cause': 'shibboleth-cause',
}
OPTION = 'leaky_login'
"""The option with the first secret, declared as secret by the driver."""


class LeakyDriver(DummyDriver):
    """A dummy whose calls fail, with a text that has secrets in it."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.configuration.append_config_values(
            [
                cfg.StrOpt(OPTION, secret=True),
                cfg.BoolOpt('leaky_setup_fails', default=False),
            ]
        )

    def do_setup(self, context: Any) -> None:
        if self.configuration.leaky_setup_fails:
            self._fail('do_setup')
        super().do_setup(context)

    def create_share(self, *args: Any, **kwargs: Any) -> Any:
        if self.inventory():
            self._fail('create_share')
        return super().create_share(*args, **kwargs)

    def extend_share(self, *args: Any, **kwargs: Any) -> None:
        self._fail('extend_share', exception.ServiceUnavailable)

    def get_share_status(self, *args: Any, **kwargs: Any) -> Any:
        self._fail('get_share_status')

    def update_access(self, *args: Any, **kwargs: Any) -> Any:
        self._fail('update_access')

    def _update_share_stats(self, data: Any = None) -> None:
        super()._update_share_stats(
            {
                'array_password': SECRETS['password'],
                'note': f'reached by {self._text("stats")}',
                **(data or {}),
            }
        )

    def _fail(
        self,
        call: str,
        kind: type[exception.ManilaLiteError] = exception.ManilaLiteError,
    ) -> NoReturn:
        try:
            raise OSError(f'ssh --password {SECRETS["cause"]} array')
        except OSError as error:
            raise kind(self._text(call)) from error

    def _text(self, call: str) -> str:
        login = getattr(self.configuration, OPTION)
        return (
            f'{call} as {login} with password={SECRETS["password"]} at '
            f'https://root:{SECRETS["url"]}@array/api, '
            f"{{'X-Auth-Token': '{SECRETS['token']}'}}"
        )
