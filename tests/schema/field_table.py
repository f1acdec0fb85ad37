"""What must be on the wire: numbers, names, types and oneofs of the core messages.

A second record beside the ``.proto`` sources, so that a slip in either shows. A ``file`` line
gives an import path and its package; an indented block follows each message's name. Types are
relative to the file's package.
"""

TABLE = """
file tensorflow/core/framework/log_memory.proto tensorflow
MemoryLogStep
    1 step_id int64; 2 handle string
MemoryLogTensorAllocation
    1 step_id int64; 2 kernel_name string; 3 tensor TensorDescription
MemoryLogTensorDeallocation
    1 allocation_id int64; 2 allocator_name string
MemoryLogTensorOutput
    1 step_id int64; 2 kernel_name string; 3 index int32; 4 tensor TensorDescription
MemoryLogRawAllocation
    1 step_id int64; 2 operation string; 3 num_bytes int64; 4 ptr uint64;
    5 allocation_id int64; 6 allocator_name string
MemoryLogRawDeallocation
    1 step_id int64; 2 operation string; 3 allocation_id int64; 4 allocator_name string;
    5 deferred bool
file tensorflow/core/framework/step_stats.proto tensorflow
AllocationRecord
    1 alloc_micros int64; 2 alloc_bytes int64
AllocatorMemoryUsed
    1 allocator_name string; 2 total_bytes int64; 3 peak_bytes int64; 4 live_bytes int64;
    5 allocator_bytes_in_use int64; 6 allocation_records repeated AllocationRecord
NodeOutput
    1 slot int32; 3 tensor_description TensorDescription
MemoryStats
    1 temp_memory_size int64; 2 device_temp_memory_size int64; 3 persistent_memory_size int64;
    4 device_persistent_memory_size int64; 5 persistent_tensor_alloc_ids repeated int64;
    6 device_persistent_tensor_alloc_ids repeated int64
NodeExecStats
    1 node_name string; 2 all_start_micros int64; 3 op_start_rel_micros int64;
    4 op_end_rel_micros int64; 5 all_end_rel_micros int64;
    6 memory repeated AllocatorMemoryUsed; 7 output repeated NodeOutput;
    8 timeline_label string; 9 scheduled_micros int64; 10 thread_id uint32;
    11 referenced_tensor repeated AllocationDescription; 12 memory_stats MemoryStats;
    13 all_start_nanos int64; 14 op_start_rel_nanos int64; 15 op_end_rel_nanos int64;
    16 all_end_rel_nanos int64; 17 scheduled_nanos int64
DeviceStepStats
    1 device string; 2 node_stats repeated NodeExecStats; 3 thread_names map<uint32,string>
StepStats
    1 dev_stats repeated DeviceStepStats
file plugin/xprof/protobuf/op_metrics.proto tensorflow.profiler
MemoryAccessBreakdown
    1 memory_accessed repeated OpMetrics.MemoryAccessed
OpMetrics
OpMetrics.MemoryAccessed
    1 operation_type OpMetrics.MemoryAccessed.OperationType; 2 memory_space uint64;
    3 bytes_accessed uint64
file plugin/xprof/protobuf/memory_profile.proto tensorflow.profiler
MemoryAggregationStats
    1 stack_reserved_bytes int64; 2 heap_allocated_bytes int64; 3 free_memory_bytes int64;
    4 fragmentation double; 5 peak_bytes_in_use int64
MemoryActivityMetadata
    1 memory_activity MemoryActivity; 2 requested_bytes int64; 3 allocation_bytes int64;
    4 address uint64; 5 tf_op_name string; 6 step_id int64; 7 region_type string;
    8 data_type string; 9 tensor_shape string
MemoryProfileSnapshot
    1 time_offset_ps int64; 2 aggregation_stats MemoryAggregationStats;
    3 activity_metadata MemoryActivityMetadata
MemoryProfileSummary
    1 peak_bytes_usage_lifetime int64; 2 peak_stats MemoryAggregationStats;
    3 peak_stats_time_ps int64; 4 memory_capacity int64
ActiveAllocation
    1 snapshot_index int64; 2 special_index int64; 3 num_occurrences int64
PerAllocatorMemoryProfile
    1 memory_profile_snapshots repeated MemoryProfileSnapshot;
    2 profile_summary MemoryProfileSummary; 3 active_allocations repeated ActiveAllocation;
    4 special_allocations repeated MemoryActivityMetadata;
    5 sampled_timeline_snapshots repeated MemoryProfileSnapshot
HloModule
    1 name string; 2 start_time_ps int64; 3 end_time_ps int64; 4 id int64; 5 plane_name string
MemoryProfile
    1 memory_profile_per_allocator map<string,PerAllocatorMemoryProfile>; 2 num_hosts int32;
    3 memory_ids repeated string; 5 version int32; 6 hlo_modules repeated HloModule;
    reserved 4
file tensorflow/core/framework/graph.proto tensorflow
GraphDef
    1 node repeated NodeDef; 2 library FunctionDefLibrary; 3 version int32;
    4 versions VersionDef; 5 debug_info GraphDebugInfo
file tensorflow/core/framework/node_def.proto tensorflow
NodeDef
    1 name string; 2 op string; 3 input repeated string; 4 device string;
    5 attr map<string,AttrValue>; 6 experimental_debug_info NodeDef.ExperimentalDebugInfo;
    7 experimental_type FullTypeDef
NodeDef.ExperimentalDebugInfo
    1 original_node_names repeated string; 2 original_func_names repeated string
file tsl/profiler/protobuf/profiler_analysis.proto tensorflow
NewProfileSessionRequest
    1 request ProfileRequest; 2 repository_root string; 3 hosts repeated string;
    4 session_id string
NewProfileSessionResponse
    1 error_message string; 2 empty_trace bool
EnumProfileSessionsAndToolsRequest
    1 repository_root string
ProfileSessionInfo
    1 session_id string; 2 available_tools repeated string
EnumProfileSessionsAndToolsResponse
    1 error_message string; 2 sessions repeated ProfileSessionInfo
ProfileSessionDataRequest
    1 repository_root string; 2 session_id string; 3 tool_name string;
    4 parameters map<string,string>; 5 host_name string
ProfileSessionDataResponse
    1 error_message string; 2 output_format string; 3 output bytes
file tsl/profiler/protobuf/profiler_service.proto tensorflow
ToolRequestOptions
    2 output_formats string; 3 save_to_repo bool
ProfileRequest
    1 duration_ms uint64; 2 max_events uint64; 3 tools repeated string; 4 opts ProfileOptions;
    5 repository_root string; 6 session_id string; 7 host_name string;
    8 tool_options map<string,ToolRequestOptions>; 9 emit_xspace bool
ProfileToolData
    1 name string; 2 data bytes
ProfileResponse
    6 tool_data repeated ProfileToolData; 7 empty_trace bool;
    8 xspace profiler.XSpace; reserved 1 2 3 4 5
TerminateRequest
    1 session_id string
TerminateResponse
GetSnapshotRequest
    1 snapshot_session_id string
ContinuousProfilingResponse
StopContinuousProfilingRequest
StopContinuousProfilingResponse
MonitorRequest
    1 duration_ms uint64; 2 monitoring_level int32; 3 timestamp bool
MonitorResponse
    1 data string; 10 monitor_result ProfilerServiceMonitorResult; reserved 2 3 4 5 6 7 8 9
file tsl/profiler/protobuf/profiler_options.proto tensorflow
ProfileOptions
    1 include_dataset_ops bool; 2 host_tracer_level uint32; 3 device_tracer_level uint32;
    4 python_tracer_level uint32; 5 version uint32; 6 device_type ProfileOptions.DeviceType;
    7 enable_hlo_proto bool; 8 start_timestamp_ns uint64; 9 duration_ms uint64;
    10 repository_path string; 11 trace_options ProfileOptions.TraceOptions;
    12 advanced_configuration map<string,ProfileOptions.AdvancedConfigValue>;
    13 raise_error_on_start_failure bool; 14 session_id string; 15 override_hostname string;
    16 enable_multipass bool
ProfileOptions.TraceOptions
    1 host_traceme_filter_mask uint64
ProfileOptions.AdvancedConfigValue
    1 string_value string in value; 2 bool_value bool in value; 3 int64_value int64 in value
RemoteProfilerSessionManagerOptions
    1 profiler_options ProfileOptions; 2 service_addresses repeated string;
    3 session_creation_timestamp_ns uint64; 4 max_session_duration_ms uint64;
    5 delay_ms uint64
file tsl/profiler/protobuf/profiler_service_monitor_result.proto tensorflow
ProfilerServiceMonitorResult
    1 response_type ProfilerServiceMonitorResult.ResponseType;
    2 device_idle_time_percent double; 3 matrix_unit_utilization_percent double;
    4 step_time_ms_avg double; 5 step_time_ms_min double; 6 step_time_ms_max double;
    7 infeed_percent_avg double; 8 infeed_percent_min double; 9 infeed_percent_max double
file tsl/profiler/protobuf/xplane.proto tensorflow.profiler
XSpace
    1 planes repeated XPlane; 2 errors repeated string; 3 warnings repeated string;
    4 hostnames repeated string
XPlane
    1 id int64; 2 name string; 3 lines repeated XLine;
    4 event_metadata map<int64,XEventMetadata>; 5 stat_metadata map<int64,XStatMetadata>;
    6 stats repeated XStat
XLine
    1 id int64; 2 name string; 3 timestamp_ns int64; 4 events repeated XEvent;
    9 duration_ps int64; 10 display_id int64; 11 display_name string; reserved 5 6 7 8
XEvent
    1 metadata_id int64; 2 offset_ps int64 in data; 3 duration_ps int64;
    4 stats repeated XStat; 5 num_occurrences int64 in data
XStat
    1 metadata_id int64; 2 double_value double in value; 3 uint64_value uint64 in value;
    4 int64_value int64 in value; 5 str_value string in value; 6 bytes_value bytes in value;
    7 ref_value uint64 in value
XEventMetadata
    1 id int64; 2 name string; 3 metadata bytes; 4 display_name string;
    5 stats repeated XStat; 6 child_id repeated int64
XStatMetadata
    1 id int64; 2 name string; 3 description string
"""
