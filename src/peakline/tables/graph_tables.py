"""Tables of graphs (graph.proto)."""

from __future__ import annotations

from peakline.tables.definition import parse_tables

DEFINITIONS = parse_tables("""
graphs: One row per graph of the file.
    graph string name of the graph: empty for the only one, else such as partition 0
    kind string graph_def, meta_graph, partition, function_partition, hlo, pre_ or post_optimization
    tags string tags of a meta graph, separated by commas
    producer int64 version of the writer
    min_consumer int64 oldest reader that may read it
    bad_consumers string readers that must not read it, separated by commas
    version int64 the deprecated version
    nodes int64 nodes outside functions
    functions int64 functions of its library

nodes: One row per node of a graph or of a function body.
    graph string the graph
    name string name of the node
    op string type of the op
    device string requested device, empty for any
    function string? the function whose body it stands in
    original_nodes string? the nodes it was made from, separated by commas
    original_functions string? the functions those stand in, separated by commas
    full_type string? experimental_type, in text format

edges: One row per input of a node.
    graph string the graph
    source string name of the node or function argument it comes from
    source_output int64 which output; -1 for a control edge
    target string name of the node it goes to
    target_input int64 place in the list of inputs
    is_control bool whether it only orders
    function string? the function whose body it stands in
    source_argument string? in a function body: the output argument of the source
    input string? the text, where it is not the usual spelling of the columns before

node_attrs: One row per attribute of a node.
    graph string the graph
    name string name of the node
    attr string the attribute
    value string the value; of a tensor only type, shape and size
    kind string s, i, f, b, type, shape, tensor, list, func, placeholder, or empty for none
    function string? the function whose body the node stands in

functions: One row per function of a library.
    graph string the graph
    name string name of the function
    gradient string? the function that computes its gradient
    nodes int64 nodes of its body
    description string the signature's description
    is_stateful bool whether the signature says so
    signature string? what else the signature says (its attributes, flags), in text format
    gradient_of string? op types whose registered gradient it is, separated by commas

function_arguments: One row per argument, result or control result of a function.
    graph string the graph
    function string the function
    role string input, output or control_output
    position int64 place among those of its role
    name string its name
    data_type string? element type, where fixed
    type_attr string? attribute that holds the type
    number_attr string? attribute that holds how many
    type_list_attr string? attribute that holds the types
    is_ref bool whether it is a reference
    source string? output or control_output: where its value comes from
    handle string? the resource data types and shapes, in text format
    description string? its description
    full_type string? experimental_full_type, in text format

function_attrs: One row per attribute of a function or of one of its arguments.
    graph string the graph
    function string the function
    argument int64? the argument's position (arg_attr); null for the function's own
    attr string the attribute
    value string the value
    unique_id int64? of a resource argument (resource_arg_unique_id)

node_frames: One row per frame of the stack that made a node (GraphDebugInfo).
    graph string the graph
    node string the key: the node, and after @ the function
    depth int64 0 is the innermost frame
    file string source file
    line int64 line
    column int64 column
    function string function of the source
    code string the line of code
""")
