"""Allocate addresses of a network that is described by options.

There is no network service: the operator has reserved these addresses. An
allocation locks the segment, so that concurrent allocations do not choose
the same address; a unique key makes sure that none is allocated twice.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
import datetime
import ipaddress
import itertools
import types
import typing

from manila_lite import exception
from manila_lite.db.queries.networks import allocations as network_allocations
from manila_lite.db.session import Session
from manila_lite.network.base import NetworkPlugin

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Range(typing.NamedTuple):
    """A range of addresses, both ends included, as integers."""

    first: int
    last: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class StandaloneNetwork(NetworkPlugin):
    """Network plug-in for a preconfigured network; see the module."""

    def check(self) -> None:
        super().check()
        self.gateway = self._gateway()
        self.network = self._network()
        self.ranges = self._ranges()
        self.network_type = self._option('network_type')
        self.segmentation_id = self._option('segmentation_id')
        if self.network_type not in (None, 'flat') and (self.segmentation_id is None):
            raise self.configuration_error(
                'standalone_network_plugin_segmentation_id is required for '
                f'networks of type {self.network_type}'
            )

    def _option(self, name: str) -> typing.Any:
        return self.options[f'standalone_network_plugin_{name}']

    def _required(self, name: str) -> str:
        value = self._option(name)
        if not value:
            raise self.configuration_error(
                f'standalone_network_plugin_{name} is required'
            )
        return value

    def _gateway(self) -> Address:
        given = self._required('gateway')
        try:
            gateway = ipaddress.ip_address(given)
        except ValueError:
            raise self.configuration_error(
                f'standalone_network_plugin_gateway is not an address: {given}'
            ) from None
        if gateway.version not in self.ip_versions:
            raise self.configuration_error(
                f'the gateway {gateway} has version {gateway.version}, and '
                f'network_plugin_ipv{gateway.version}_enabled is not set'
            )
        return gateway

    def _network(self) -> Network:
        mask = self._required('mask')
        try:
            return ipaddress.ip_network(f'{self.gateway}/{mask}', strict=False)
        except ValueError:
            raise self.configuration_error(
                f'standalone_network_plugin_mask is not a mask: {mask}'
            ) from None

    def _ranges(self) -> list[Range]:
        given = self._option('allowed_ip_ranges')
        if given:
            return merge_ranges(self._range(one) for one in given)
        first, last = (
            int(self.network.network_address),
            int(self.network.broadcast_address),
        )
        if last - first >= 2:  # without network and broadcast address
            first, last = first + 1, last - 1
        return [Range(first, last)]

    def _range(self, given: str) -> Range:
        first, _, last = given.partition('-')
        try:
            ends = [
                ipaddress.ip_address(address.strip())
                for address in (first, last or first)
            ]
        except ValueError:
            raise self._bad_range(f'{given} is not a range') from None
        for address in ends:
            if address not in self.network:
                raise self._bad_range(f'{address} is not in {self.network}')
        if int(ends[0]) > int(ends[1]):
            raise self._bad_range(f'{given} ends before it begins')
        return Range(int(ends[0]), int(ends[1]))

    def _bad_range(self, reason: str) -> exception.ManilaLiteError:
        return self.configuration_error(
            f'standalone_network_plugin_allowed_ip_ranges: {reason}'
        )

    # Attributes of the network

    @property
    def segment(self) -> str:
        """The scope in which addresses are unique."""
        return (
            f'{self.network_type or "flat"}:{self.segmentation_id or 0}:{self.network}'
        )

    @property
    def attributes(self) -> dict[str, typing.Any]:
        """The attributes stored with subnets and addresses."""
        return {
            'network_type': self.network_type,
            'segmentation_id': self.segmentation_id,
            'cidr': str(self.network),
            'gateway': str(self.gateway),
            'ip_version': self.network.version,
            'mtu': self._option('mtu'),
        }

    def free_addresses(
        self,
        taken: Collection[str],
        freed: Mapping[str, datetime.datetime] = types.MappingProxyType({}),
    ) -> Iterator[str]:
        """Yield the free addresses: those that were not used for longest.

        First come those that never were, the lowest first. `freed` says when
        the others were freed: clients may still try to reach their former
        server there.
        """
        used = {int(ipaddress.ip_address(address)) for address in taken}
        used.add(int(self.gateway))
        freed_at = {
            int(ipaddress.ip_address(address)): time for address, time in freed.items()
        }
        address_type = type(self.gateway)
        for part in self.ranges:
            for number in range(part.first, part.last + 1):
                if number not in used and number not in freed_at:
                    yield str(address_type(number))
        for number in sorted(
            freed_at.keys() - used, key=lambda one: (freed_at[one], one)
        ):
            if any(part.first <= number <= part.last for part in self.ranges):
                yield str(address_type(number))

    # Allocation

    def allocate_network(
        self, share_server_id: str, subnet_id: str | None, count: int
    ) -> Sequence[typing.Any]:
        return self.db.write(self._allocate, share_server_id, subnet_id, count)

    def _allocate(
        self, session: Session, share_server_id: str, subnet_id: str | None, count: int
    ) -> Sequence[typing.Any]:
        network_allocations.lock_segment(session, self.segment)
        wanted = count - network_allocations.count(
            session, share_server_id, self.label, subnet_id
        )
        if wanted > 0:
            taken = network_allocations.list_addresses(session, self.segment)
            freed = network_allocations.list_freed(session, self.segment)
            found = list(itertools.islice(self.free_addresses(taken, freed), wanted))
            if len(found) < wanted:
                raise exception.NoFreeAddress(
                    segment=self.network,
                    wanted=wanted,
                    free=len(found),
                    size=sum(part.size for part in self.ranges),
                )
            self._insert(session, share_server_id, subnet_id, found)
        return network_allocations.list_for_server(
            session, share_server_id, self.label, subnet_id
        )

    def manage_network_allocations(
        self, share_server_id: str, subnet_id: str | None, addresses: Collection[str]
    ) -> list[str]:
        return self.db.write(self._manage, share_server_id, subnet_id, addresses)

    def _manage(
        self,
        session: Session,
        share_server_id: str,
        subnet_id: str | None,
        addresses: Collection[str],
    ) -> list[str]:
        own = {
            str(ipaddress.ip_address(one))
            for one in addresses
            if ipaddress.ip_address(one) in self.network
        }
        network_allocations.lock_segment(session, self.segment)
        holders = network_allocations.list_address_owners(session, self.segment, own)
        for address, holder in sorted(holders.items()):
            if holder != share_server_id:
                raise exception.NetworkException(
                    reason=f'{address} belongs to share server {holder}'
                )
        self._insert(session, share_server_id, subnet_id, sorted(own - holders.keys()))
        return [one for one in addresses if str(ipaddress.ip_address(one)) not in own]

    def _insert(
        self,
        session: Session,
        share_server_id: str,
        subnet_id: str | None,
        addresses: Collection[str],
    ) -> None:
        network_allocations.insert(
            session,
            share_server_id,
            self.label,
            self.segment,
            subnet_id,
            addresses,
            self.attributes,
        )
        if subnet_id is not None:
            network_allocations.update_subnet(session, subnet_id, self.attributes)


def merge_ranges(ranges: typing.Iterable[Range]) -> list[Range]:
    """Return the ranges in order, with overlapping ones merged."""
    merged: list[Range] = []
    for part in sorted(ranges):
        if merged and part.first <= merged[-1].last + 1:
            part = Range(merged[-1].first, max(merged[-1].last, part.last))
            merged.pop()
        merged.append(part)
    return merged
