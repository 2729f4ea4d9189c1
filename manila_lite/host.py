"""The address of a back end or of one of its pools: host@backend#pool."""

import dataclasses
import functools
import typing

ServiceHost = typing.NewType('ServiceHost', str)
"""The back end that something belongs to, as host@backend."""


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A share service, as host@backend, and one of its pools, if any."""

    service_host: str
    pool: str = ''

    @classmethod
    @functools.lru_cache(maxsize=4096)
    def parse(cls, text: str) -> 'Host':
        """Parse a host; parts that are missing are empty."""
        service_host, _, pool = text.partition('#')
        return cls(service_host, pool)

    @property
    def machine(self) -> str:
        """The host that the service runs on."""
        return self.service_host.partition('@')[0]

    @property
    def backend(self) -> str:
        """The name of the back end, or an empty string."""
        return self.service_host.partition('@')[2]

    def __str__(self) -> str:
        if not self.pool:
            return self.service_host
        return f'{self.service_host}#{self.pool}'
