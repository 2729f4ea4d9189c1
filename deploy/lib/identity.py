"""Enter the share service into Keystone, or get a token of its administrator.

The virtual environment of manila_lite runs this. Passwords come from standard
input, one a line: that of the administrator, then that of the service.
"""

import argparse
import sys

from keystoneauth1 import adapter, exceptions, session
from keystoneauth1.identity import v3

DOMAIN = 'default'
SERVICES = (('shared-file-system', 'manila_lite'), ('sharev2', 'manila_lite_v2'))
REFUSED = 3


def sign_in(url, user, project, password, cacert=None):
    """Return a client; nothing is sent before its first request."""
    return adapter.Adapter(
        session.Session(
            v3.Password(
                url,
                username=user,
                password=password,
                user_domain_id=DOMAIN,
                project_name=project,
                project_domain_id=DOMAIN,
            ),
            verify=cacert or True,
        ),
        # What the catalog says may not be reachable from this machine.
        endpoint_override=url,
    )


class Entries:
    """Makes what Keystone lacks, and prints what it has changed."""

    def __init__(self, keystone):
        self._keystone = keystone

    def find_or_create(self, kind, name, query, values=None):
        """Return the id of the entry that the query finds."""
        found = self._keystone.get(f'/{kind}s', params=query).json()[f'{kind}s']
        if not found:
            values = {**query, **(values or {})}
            found = [self._keystone.post(f'/{kind}s', json={kind: values}).json()[kind]]
            print(f'made the {kind} {name} in Keystone')
        return found[0]['id']

    def add_region(self, region):
        found = self._keystone.get(f'/regions/{region}', raise_exc=False)
        if found.status_code == 404:
            self._keystone.post('/regions', json={'region': {'id': region}})
            print(f'made the region {region} in Keystone')

    def assign(self, user_id, project_id, role, role_id):
        path = f'/projects/{project_id}/users/{user_id}/roles/{role_id}'
        if self._keystone.head(path, raise_exc=False).status_code != 204:
            self._keystone.put(path)
            print(f'gave the role {role} to the service in Keystone')

    def set_password(self, user_id, password):
        self._keystone.patch(f'/users/{user_id}', json={'user': {'password': password}})
        print('set the password of the service in Keystone')

    def set_endpoint(self, service_id, service, interface, region, url):
        wanted = {'service_id': service_id, 'interface': interface, 'region_id': region}
        found = self._keystone.get('/endpoints', params=wanted).json()
        if not found['endpoints']:
            body = {'endpoint': {**wanted, 'url': url}}
            self._keystone.post('/endpoints', json=body)
        elif found['endpoints'][0]['url'] != url:
            self._keystone.patch(
                f'/endpoints/{found["endpoints"][0]["id"]}',
                json={'endpoint': {'url': url}},
            )
        else:
            return
        print(f'set the {interface} endpoint of {service} in Keystone')


def register(args, keystone, password):
    """Make the user of the service and the entries of the catalog."""
    entries = Entries(keystone)
    project = entries.find_or_create(
        'project',
        args.service_project,
        {'name': args.service_project, 'domain_id': DOMAIN},
    )
    user = entries.find_or_create(
        'user',
        args.service_user,
        {'name': args.service_user, 'domain_id': DOMAIN},
        {'password': password},
    )
    role = entries.find_or_create('role', 'service', {'name': 'service'})
    entries.assign(user, project, 'service', role)
    try:
        sign_in(
            args.url, args.service_user, args.service_project, password, args.cacert
        ).get_token()
    except exceptions.Unauthorized:
        entries.set_password(user, password)
    entries.add_region(args.region)
    for kind, name in SERVICES:
        service = entries.find_or_create(
            'service', kind, {'type': kind}, {'name': name}
        )
        for interface in ('public', 'internal', 'admin'):
            entries.set_endpoint(service, kind, interface, args.region, args.endpoint)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        '--cacert', help='certificates of authorities to verify Keystone with'
    )
    parser.add_argument('url')
    parser.add_argument('user')
    parser.add_argument('project')
    verbs = parser.add_subparsers(dest='verb', required=True)
    verbs.add_parser('token', help='print a token')
    registering = verbs.add_parser('register', help='make what is missing')
    registering.add_argument('service_user')
    registering.add_argument('service_project')
    registering.add_argument('region')
    registering.add_argument('endpoint')
    args = parser.parse_args()
    admin_password, service_password, *_ = [*sys.stdin.read().split('\n'), '']
    keystone = sign_in(args.url, args.user, args.project, admin_password, args.cacert)
    try:
        token = keystone.get_token()
    except exceptions.Unauthorized as refused:
        print(refused, file=sys.stderr)
        return REFUSED
    if args.verb == 'token':
        print(token)
    else:
        register(args, keystone, service_password)
    return 0


if __name__ == '__main__':
    sys.exit(main())
