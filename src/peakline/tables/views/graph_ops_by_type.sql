-- How many nodes of each type the graphs have, and on which devices.
-- Units: counts.
-- Tables: nodes
-- column: graph string: the graph
-- column: op string: type of the op
-- column: nodes int64: how many nodes
-- column: in_functions int64: how many of them stand in bodies of functions
-- column: devices int64: how many different devices they request
select graph, op, count(*) as nodes, count(function) as in_functions,
    count(distinct device) filter (where device <> '') as devices
from nodes
group by graph, op
order by graph, nodes desc, op
