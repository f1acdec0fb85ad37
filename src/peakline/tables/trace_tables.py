"""Tables of what ran when: planes, lines, events, steps, flows, counters."""

from __future__ import annotations

from peakline.tables.definition import parse_tables

DEFINITIONS = parse_tables("""
planes: One row per plane: a device, the host's threads, or a group of other data.
    plane_id int64 row number of the plane in the file
    name string name, such as /host:CPU or /device:GPU:0
    kind string host, device or other
    native_id int64? the number the format itself gives it: a plane's or process's id

lines: One row per line of a plane: a thread, a stream, or a derived line.
    line_id int64 row number of the line in the file
    plane_id int64 the plane it belongs to
    name string display name where given, else name
    start_ps int64 the line's own base time
    native_id int64? the number the format itself gives it: a line's or thread's id

events: One row per event of a line, in file order.
    event_id int64 row number of the event in the file
    line_id int64 the line it belongs to
    name string name of the event's metadata, empty when the file does not give one
    start_ps int64? start; null for an aggregated event, which has no time
    duration_ps int64 duration, 0 for an instant
    step_id int64? the step it belongs to; null when it belongs to none
    category string? the category, where the format has one
    type_id int64? its row in event_types, where the format has them
    parent_id int64? the innermost event of the line that encloses it; null where none does
    depth int32? how many events of the line enclose it; null without a start
    self_ps int64? duration without what events directly inside it cover; null without a start
    activity string? what goes on then, one of the words of sql.md; null without a start

event_types: One row per kind of event of a plane (XEventMetadata): what its events share.
    type_id int64 row number
    plane_id int64 the plane it belongs to
    native_id int64 the number the format itself gives it
    name string name, which its events have
    display_name string a shorter name to show, empty where there is none

event_type_stats: One row per stat that holds for every event of a kind.
    type_id int64 the kind of event
    name string the stat's name
    value string? the value as text; null when the stat holds none

plane_stats: One row per stat of a plane, such as what a device is able to.
    plane_id int64 the plane
    name string the stat's name
    value string? the value as text; null when the stat holds none

event_stats: One row per stat of an event.
    event_id int64 the event it belongs to
    name string the stat's name
    value string? the value as text; null when the stat holds none

steps: One row per step (a group of events that belong together).
    step_id int64 the step's sequence number, not the user's number
    name string the step's name, such as train 170
    start_ps int64 start of the event that began it
    end_ps int64 end of the event that began it
    found_by string? mark, annotation, device or function (inferred): see steps.md
    is_cut_off bool? whether the record begins or ends in the middle of it

module_runs: One row per run of a compiled module on a device (the XLA Modules line).
    name string the module's name
    start_ps int64 offset on its own line
    end_ps int64 offset of its end on its own line
    plane_name string the device

flows: One row per end of an arrow between events (Chrome trace flow events s, t, f).
    flow_id int64 number of the arrow; its rows share it
    name string name of the arrow
    phase string s begins the arrow, t passes on, f ends it
    line_id int64 the line of the event it is bound to
    time_ps int64 when
    binds_enclosing bool whether it is bound to the event that encloses it (bp is e)

counters: One row per value of a counter.
    plane_id int64 the plane it belongs to
    name string name of the counter
    series string which of the counter's values
    time_ps int64 when it had the value
    value float64 the value
""")
