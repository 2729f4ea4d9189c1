"""Options of an adopted configuration file that are ignored, and why.

A file of OpenStack Manila may set options of what this service does not
have. They are neither read nor refused, but listed with these reasons, so
that they are not taken for misspelt ones.
"""

from collections.abc import Iterator
import typing

BACKEND = '<back end>'
"""Stands for the section of each back end."""

SECTIONS = {
    'barbican': 'shares are not encrypted by a key manager',
    'cinder': 'no driver uses volumes',
    'cinder_admin': 'no driver uses volumes',
    'glance': 'no driver starts instances',
    'healthcheck': '/healthcheck has no options',
    'key_manager': 'shares are not encrypted by a key manager',
    'neutron': 'networks come from network_api_class = standalone',
    'nova': 'no driver starts instances',
    'osprofiler': 'there is no profiler',
    'profiler': 'there is no profiler',
    'ssl': 'a proxy ends TLS',
}


class _Ignored(typing.NamedTuple):
    reason: str
    section: str
    names: str


_CLASS = 'names a class of Manila, which has no counterpart here'
_WEB = 'the web server has other options, see tcp_keepalive and client_*'
_DATA = 'there is no data service; back ends copy by themselves'
_BACKUPS = 'the data service reaches shares and backups as directories'
_QUOTA = 'usage is counted in the transaction; no reservation expires'
_RETRIES = 'transaction_retry_limit limits the repetition of transactions'
_ASYNC = 'no asynchronous connections are used'
_DRIVER = 'belongs to a driver of Manila'
_FIXED = 'the topics of messages are fixed'

_IGNORED = (
    _Ignored(
        _CLASS,
        'DEFAULT',
        """data_manager db_backend db_driver drivers_private_storage_class
        hook_drivers osapi_share_ext_list osapi_share_extension
        scheduler_driver scheduler_host_manager scheduler_manager
        share_api_class share_manager quota_driver""",
    ),
    _Ignored(_CLASS, 'quota', 'driver'),
    _Ignored(
        'there is no such part here',
        'DEFAULT',
        """api_rate_limit fatal_exception_format_errors max_gigabytes
        monkey_patch monkey_patch_modules rootwrap_config
        scheduler_json_config_location share_service_inithost_offload
        run_external_periodic_tasks backdoor_port
        backdoor_socket log_options""",
    ),
    _Ignored(
        'use "manila-lite services" with --apis', 'DEFAULT', 'osapi_share_workers'
    ),
    _Ignored('answers are not validated', 'api', 'response_validation'),
    _Ignored(
        _WEB,
        'DEFAULT',
        """api_paste_config wsgi_log_format tcp_keepidle
        wsgi_default_pool_size max_header_line wsgi_keep_alive
        client_socket_timeout wsgi_server_debug""",
    ),
    _Ignored(_FIXED, 'DEFAULT', 'data_topic scheduler_topic share_topic'),
    _Ignored(
        'use [oslo_middleware] enable_proxy_headers_parsing',
        'DEFAULT',
        'use_forwarded_for',
    ),
    _Ignored(
        'use [DEFAULT] max_request_body_size',
        'oslo_middleware',
        'max_request_body_size',
    ),
    _Ignored(
        'use [http_basic] users_file', 'oslo_middleware', 'http_basic_auth_user_file'
    ),
    _Ignored(_QUOTA, 'quota', 'max_age reservation_expire until_refresh'),
    _Ignored(_QUOTA, 'DEFAULT', 'max_age reservation_expire until_refresh'),
    _Ignored(
        _DATA,
        'DEFAULT',
        """data_access_wait_access_rules_timeout data_node_access_ips
        data_node_access_cert data_node_access_admin_user
        data_node_mount_options mount_tmp_location check_hash""",
    ),
    _Ignored(
        _BACKUPS,
        'DEFAULT',
        """data_manager_backup_supported_share_protocols
        backup_mount_template backup_unmount_template backup_mount_export
        backup_mount_proto backup_mount_options
        backup_share_mount_template backup_share_unmount_template
        backup_protocol_access_mapping
        backup_mount_tmp_location backup_continue_update_interval
        restore_continue_update_interval""",
    ),
    _Ignored(
        'share groups are placed by the filters of shares',
        'DEFAULT',
        'scheduler_default_share_group_filters',
    ),
    _Ignored(
        'networks are not those of neutron',
        'DEFAULT',
        'server_migration_extend_neutron_network',
    ),
    _Ignored(
        'usage of shares is not gathered',
        'DEFAULT',
        """enable_gathering_share_usage_size
        share_usage_size_update_interval""",
    ),
    _Ignored(
        'rules always stay when a share is unmanaged',
        'DEFAULT',
        'unmanage_remove_access_rules',
    ),
    _Ignored(
        'drivers copy by themselves',
        BACKEND,
        """num_shell_tries share_mount_template
        share_unmount_template protocol_access_mapping""",
    ),
    _Ignored(
        'there are no hooks',
        BACKEND,
        """enable_pre_hooks enable_post_hooks enable_periodic_hooks
        suppress_pre_hooks_errors suppress_post_hooks_errors
        periodic_hooks_interval""",
    ),
    _Ignored(
        _DRIVER,
        BACKEND,
        """ssh_conn_timeout ssh_min_pool_conn ssh_max_pool_conn
        ganesha_config_dir ganesha_config_path ganesha_service_name
        ganesha_db_path ganesha_export_dir ganesha_export_template_dir
        ganesha_rados_store_enable ganesha_rados_store_pool_name
        ganesha_rados_export_counter ganesha_rados_export_index
        smb_template_config_path volume_name_template
        volume_snapshot_name_template share_mount_path
        max_time_to_create_volume max_time_to_extend_volume
        max_time_to_attach service_instance_smb_config_path share_helpers
        share_volume_fstype cinder_volume_type set_zero_reserved_blocks
        service_instance_user service_instance_password
        path_to_private_key max_time_to_build_instance limit_ssh_access
        service_instance_name_or_id service_net_name_or_ip
        tenant_net_name_or_ip service_image_name
        service_instance_name_template manila_service_keypair_name
        path_to_public_key service_instance_security_group
        service_instance_flavor_id service_network_name
        service_network_host service_network_cidr
        service_network_division_mask interface_driver
        connect_share_server_to_tenant_network admin_network_id
        admin_subnet_id service_instance_boot_from_volume
        service_instance_boot_volume_size
        service_instance_boot_volume_type
        service_instance_base_boot_volume_id
        service_instance_boot_volume_delete_on_termination
        service_instance_boot_volume_name_template lvm_share_export_root
        lvm_share_export_ips lvm_share_mirrors lvm_share_volume_group
        lvm_share_helpers zfs_share_export_ip zfs_service_ip
        zfs_zpool_list zfs_dataset_creation_options
        zfs_dataset_name_prefix zfs_dataset_snapshot_name_prefix
        zfs_use_ssh zfs_ssh_username zfs_ssh_user_password
        zfs_ssh_private_key_path zfs_share_helpers
        zfs_replica_snapshot_prefix zfs_migration_snapshot_prefix
        container_linux_bridge_name container_ovs_bridge_name
        container_cifs_guest_ok container_image_name container_helper
        container_protocol_helper container_security_service_helper
        container_storage_helper container_volume_mount_path
        container_volume_group""",
    ),
    _Ignored(
        'reads use the connection of writes, in a snapshot',
        'database',
        'slave_connection synchronous_reader',
    ),
    _Ignored(
        _RETRIES,
        'database',
        """use_db_reconnect db_retry_interval db_inc_retry_interval
        db_max_retry_interval db_max_retries""",
    ),
    _Ignored(_ASYNC, 'database', 'asyncio_connection asyncio_slave_connection'),
    _Ignored('there is one implementation', 'database', 'backend'),
    _Ignored(
        'commits wait for the disk where that is needed',
        'database',
        'sqlite_synchronous',
    ),
)


def _by_name() -> Iterator[tuple[tuple[str, str], str]]:
    for reason, section, names in _IGNORED:
        for name in names.split():
            yield (section, name), reason


OPTIONS = dict(_by_name())
"""The reason by section and name."""


def reason(section: str, name: str, *, is_backend: bool) -> str | None:
    """Return why an option is ignored; None if it is not known to be."""
    if section in SECTIONS:
        return SECTIONS[section]
    if is_backend:
        section = BACKEND
    found = OPTIONS.get((section, name))
    if found is None and section == 'DEFAULT':
        return OPTIONS.get((BACKEND, name))
    return found
