"""What share transfers change, as tenants see it."""


def listed(api, query=''):
    return [
        one['id'] for one in api.get(f'/share-transfers/detail{query}')['transfers']
    ]


def allow(api, share, client='10.0.0.1'):
    rule = {'access_type': 'ip', 'access_to': client, 'access_level': 'rw'}
    return api.act(share, 'allow_access', rule, expect=200).json['access']


def rules_of(api, share):
    return [
        (rule['access_to'], rule['state'])
        for rule in api.get(f'/share-access-rules?share_id={share}')['access_list']
    ]


def usage_of(cloud, *projects):
    return [
        tuple(
            cloud.usage(name, project) for name in ('shares', 'gigabytes', 'snapshots')
        )
        for project in projects
    ]
