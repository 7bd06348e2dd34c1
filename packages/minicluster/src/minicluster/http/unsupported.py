"""Commands that only a real cluster has: they are refused by name, not as unknown ones.

Names: client/driver/driver.cpp, RegisterCommand.
"""

_NAMES = """
    abandon_job abort_query add_maintenance alter_query alter_replication_card
    alter_table_replica balance_tablet_cells build_master_snapshots build_snapshot
    cancel_tablet_transition check_permission_by_acl create_table_backup dump_job_context
    dump_job_proxy_log erase explain_query externalize finish_distributed_write_session
    generate_timestamps get_in_sync_replicas get_job_fail_context get_job_input
    get_job_input_paths get_job_spec get_job_trace get_query get_query_result
    get_query_tracker_info get_tablet_errors internalize
    join_reduce list_operation_events list_queries locate_skynet_share map map_reduce merge
    partition_tables patch_op_spec patch_operation_spec pause_pipeline poll_job_shell
    pull_rows read_blob_table read_journal read_query_result read_table_partition reduce
    remote_copy remove_maintenance reshard_table_automatic restore_table_backup
    resume_operation run_job_shell_command set_pipeline_dynamic_spec set_pipeline_spec sort
    start_distributed_write_session start_pipeline start_query stop_pipeline
    suspend_operation transfer_account_resources transfer_bundle_resources
    transfer_pool_resources truncate_journal vanilla write_journal write_table_fragment
"""
LACKING = frozenset(_NAMES.split())
