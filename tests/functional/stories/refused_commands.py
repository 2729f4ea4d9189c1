"""Commands of the official client that are refused, and what they print.

In a line, words in capitals stand for resources; ID is an id that is unknown.
What the client finds out without the service is left out.
"""

UNKNOWN = {
    'share group snapshot': (
        'share group snapshot show ID',
        'share group snapshot set ID --name x',
        'share group snapshot unset ID --name',
        'share group snapshot delete ID',
        'share group snapshot members list ID',
    ),
    'share backup': (
        'share backup show ID',
        'share backup set ID --name x',
        'share backup unset ID --name',
        'share backup restore ID',
        'share backup delete ID',
    ),
    'share group': (
        'share group show ID',
        'share group set ID --name x',
        'share group unset ID --name',
        'share group delete ID',
        'share create NFS 1 --share-group ID',
        'share list --share-group ID',
        'share group snapshot create ID',
        'share group snapshot list --share-group ID',
    ),
    'transfer': ('share transfer show ID', 'share transfer delete ID'),
    'qos type': (
        'share qos type show ID',
        'share qos type set ID --description x',
        'share qos type unset ID --description',
        'share qos type delete ID',
    ),
    'share': (
        'share show ID',
        'share set ID --name x',
        'share unset ID --description',
        'share delete ID',
        'share resize ID 2',
        'share abandon ID',
        'share restore ID',
        'share properties show ID',
        'share export location list ID',
        'share access create ID ip 10.0.0.1',
        'share access list ID',
        'share snapshot create ID',
        'share snapshot adopt ID /path',
        'share replica create ID',
        'share backup create ID',
        'share backup list --share ID',
        'share lock create ID share',
        'share snapshot list --share ID',
        'share replica list --share ID',
        'share transfer create ID',
        'share migration start ID HOST --preserve-snapshots False'
        ' --writable True --nondisruptive False --preserve-metadata True',
        'share migration show ID',
        'share migration complete ID',
        'share migration cancel ID',
    ),
    'export location': (
        'share export location show SHARE ID',
        'share export location set SHARE ID --property a=b',
        'share export location unset SHARE ID --property a',
    ),
    'access': (
        'share access show ID',
        'share access set ID --property a=b',
        'share access unset ID --property a',
        'share access delete SHARE ID',
    ),
    'share type': (
        'share type show ID',
        'share type set ID --name x',
        'share type unset ID key',
        'share type delete ID',
        'share type access list ID',
        'share type access create ID PROJECT',
        'share type access delete ID PROJECT',
        'share create NFS 1 --share-type ID',
        'share list --share-type ID',
    ),
    'project': (
        'share quota show ID',
        'share quota set ID --shares 5',
        'share quota delete ID',
    ),
    'snapshot': (
        'share snapshot show ID',
        'share snapshot set ID --name x',
        'share snapshot unset ID --description',
        'share snapshot delete ID',
        'share snapshot abandon ID',
        'share snapshot access create ID ip 10.0.0.1',
        'share snapshot access delete ID ID',
        'share snapshot access list ID',
        'share snapshot export location list ID',
        'share snapshot export location show ID ID',
        'share revert ID',
    ),
    'snapshot instance': (
        'share snapshot instance show ID',
        'share snapshot instance set ID --status error',
        'share snapshot instance export location list ID',
        'share snapshot instance export location show ID ID',
    ),
    'message': ('share message show ID', 'share message delete ID'),
    'replica': (
        'share replica show ID',
        'share replica set ID --status error',
        'share replica unset ID --property a',
        'share replica promote ID',
        'share replica resync ID',
        'share replica delete ID',
        'share replica export location list ID',
        'share replica export location show ID ID',
    ),
    'service': (
        'share service set ID manila-share --disable',
        'share service ensure shares ID',
    ),
    'security service': (
        'share security service show ID',
        'share security service set ID --name x',
        'share security service unset ID --description',
        'share security service delete ID',
    ),
    'instance': (
        'share instance show ID',
        'share instance set ID --status error',
        'share instance delete ID',
        'share instance export location list ID',
        'share instance export location show ID ID',
    ),
    'share network': (
        'share network show ID',
        'share network set ID --name x',
        'share network unset ID --description',
        'share network delete ID',
        'share network subnet create ID',
        'share network subnet show NETWORK ID',
        'share network subnet set NETWORK ID --property a=b',
        'share network subnet unset NETWORK ID --property a',
        'share network subnet delete NETWORK ID',
        'share server adopt HOST ID identifier',
        'share security service list --share-network ID',
    ),
    'group type': (
        'share group type show ID',
        'share group type set ID --group-specs a=b',
        'share group type unset ID a',
        'share group type delete ID',
        'share group type access list ID',
        'share group type access create ID PROJECT',
        'share group list --share-group-type ID',
        'share group type access delete ID PROJECT',
    ),
    'server': (
        'share server show ID',
        'share server set ID --status error',
        'share server abandon ID',
        'share server delete ID',
        'share server migration start ID HOST --preserve-snapshots True'
        ' --writable True --nondisruptive False',
        'share server migration show ID',
        'share server migration complete ID',
        'share server migration cancel ID',
    ),
    'lock': (
        'share lock show ID',
        'share lock set ID --lock-reason x',
        'share lock unset ID --lock-reason',
        'share lock delete ID',
    ),
}
"""Commands with an unknown resource, by the words that they must print."""

WITHOUT_ROLE = {
    'share:create': 'share create NFS 1',
    'share:update': 'share set SHARE --name x',
    'share:delete': 'share delete SHARE',
    'share:extend': 'share resize SHARE 2',
    'share:unmanage': 'share abandon SHARE',
    'share:manage': 'share adopt HOST NFS /path',
    'share:allow_access': 'share access create SHARE ip 10.0.0.1',
    'share:create_snapshot': 'share snapshot create SHARE',
    'share_snapshot:manage_snapshot': 'share snapshot adopt SHARE /path',
    'share_type:create': 'share type create other false',
    'share_type:delete': 'share type delete default',
    'share_types_extra_spec:create': ('share type set default --extra-specs a=b'),
    'share_instance:index': 'share instance list',
    'share_server:index': 'share server list',
    'service:index': 'share service list',
    'service:update': 'share service set HOST manila-share --disable',
    'scheduler_stats:pools:index': 'share pool list',
    'share_network:create': 'share network create --name other',
    'share_network:update': 'share network set NETWORK --name x',
    'share_network:delete': 'share network delete NETWORK',
    'share_network_subnet:create': 'share network subnet create NETWORK',
    'security_service:create': 'share security service create ldap',
    'share_group_type:create': 'share group type create other default',
    'share_group:create': 'share group create',
    'share_replica:create': 'share replica create SHARE',
    'share_transfer:create': 'share transfer create SHARE',
    'qos_type:create': 'share qos type create other',
    'resource_lock:create': 'share lock create SHARE share',
    'quota_set:update': 'share quota set PROJECT --shares 5',
    'quota_set:delete': 'share quota delete PROJECT',
    'share_snapshot_instance:index': 'share snapshot instance list',
}
"""By the name of the rule, which they print; for the role reader."""

INVALID = {
    'share create XYZ 1': 'share_proto XYZ is not one of CIFS, NFS',
    'share create NFS 0': 'share.size must be an integer from 1',
    'share create NFS 1 --availability-zone ID': (
        'Availability zone ID could not be found'
    ),
    'share resize BROKEN 2': 'in status error; extend needs one of: available',
    'share snapshot create SHARE': ('Snapshots of share SHARE are not supported'),
    'share replica create SHARE': 'its share type has no replication_type',
    'share type create default false': 'Share type default already exists',
    'share type delete default': 'is in use',
    'share quota set PROJECT --shares -5': (
        'quota_set.shares must be an integer from -1'
    ),
    'share service set HOST no-such-binary --disable': (
        'Service no-such-binary on host HOST could not be found'
    ),
    'share network list --created-since yesterday': (
        'created_since must be a date of the form yyyy-mm-dd'
    ),
    'share message list --limit -1': 'limit must be an integer from 0',
    'share lock list --limit -1': 'limit must be an integer from 0',
    'share group create': 'share_group_type_id is required',
    'share transfer list --limit -1': 'limit must be an integer from 0',
    'share transfer accept ID KEY': 'expired, or auth_key is not its key',
}
"""By what they must print."""

WITHOUT_REFUSAL = (
    'share availability zone list',
    'share limits show --absolute',
    'share type list',
    'share group type list',
    'share qos type list',
)
"""Commands that everybody may run who can sign in."""
