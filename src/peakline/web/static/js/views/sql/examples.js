/** Questions that a profile's tables answer, to begin with (docs/sql.md has more). */

import { h } from "../../core/dom.js";

/** @type {{question: string, tables: string[], query: string}[]} */
export const EXAMPLES = [
  {
    question: "Which ops take memory?", tables: ["buffers"],
    query: `select op, data_type, shape, count(*) as buffers, sum(allocated_bytes) as bytes
from buffers
group by all
order by bytes desc, op
limit 20`,
  },
  {
    question: "What was live when most was in use?", tables: ["buffers", "allocator_events"],
    query: `with peak as (
    select time_ps, in_use_bytes from allocator_events
    order by in_use_bytes desc, time_ps limit 1
)
select op, region_type, count(*) as buffers, sum(allocated_bytes) as bytes
from buffers, peak
where coalesce(start_ps, 0) <= peak.time_ps and (end_ps is null or end_ps > peak.time_ps)
group by all
order by bytes desc, op
limit 20`,
  },
  {
    question: "Which buffers outlive their step?", tables: ["buffers", "steps"],
    query: `select op, region_type, count(*) as buffers, sum(allocated_bytes) as bytes,
       avg(end_step - start_step) as steps
from buffers
where end_step > start_step
group by all
order by bytes desc, op`,
  },
  {
    question: "What does the allocator round away?", tables: ["buffers"],
    query: `select op, sum(allocated_bytes - requested_bytes) as waste_bytes,
       sum(allocated_bytes) as bytes,
       round(100 * sum(allocated_bytes - requested_bytes) / sum(allocated_bytes), 1) as percent
from buffers
where op <> ''
group by op
having waste_bytes > 0
order by waste_bytes desc, op
limit 20`,
  },
  {
    question: "Which steps are slow, and in what?", tables: ["step_breakdown"],
    query: `select name, device, wall_ps, wall_ps - median(wall_ps) over (partition by device) as beyond_ps,
       input_wait_ps, compile_ps, launch_ps, host_compute_ps, unknown_ps
from step_breakdown
order by beyond_ps desc
limit 20`,
  },
  {
    question: "Which ops take the time?", tables: ["op_stats"],
    query: `select side, op, op_type, occurrences, self_ps,
       self_ps / sum(self_ps) over (partition by side) as share, median_ps, p95_ps
from op_stats
order by self_ps desc
limit 30`,
  },
  {
    question: "Where does the host's time go?", tables: ["events"],
    query: `select name, count(*) as events, sum(duration_ps) as total_ps
from events
group by name
order by total_ps desc, name
limit 20`,
  },
  {
    question: "When did a thread do nothing for longest?", tables: ["events", "lines"],
    query: `with gaps as (
    select line_id, name, start_ps - max(start_ps + duration_ps) over (
        partition by line_id order by start_ps, event_id
        rows between unbounded preceding and 1 preceding
    ) as gap_ps
    from events
)
select l.name as thread, g.name as after_the_gap, g.gap_ps
from gaps g join lines l using (line_id)
order by gap_ps desc nulls last, thread
limit 10`,
  },
  {
    question: "What does the input pipeline wait for?", tables: ["input_pipeline"],
    query: `select stage, occurrences, wait_ps, self_ps, is_bottleneck
from input_pipeline
order by wait_ps desc`,
  },
  {
    question: "Which kernels could use tensor cores and do not?", tables: ["kernels"],
    query: `select kernel, op, occurrences, total_ps
from kernels
where could_use_tensor_cores and not uses_tensor_cores
order by total_ps desc`,
  },
  {
    question: "Time and memory of op types in a step?", tables: ["op_runs", "op_memory"],
    query: `select op_type, count(*) as runs, sum(compute_ps) as compute_ps, sum(m.total_bytes) as bytes
from op_runs left join op_memory m using (op_run_id)
where not is_duplicate
group by op_type
order by compute_ps desc, op_type`,
  },
  {
    question: "Which ops does a graph have?", tables: ["nodes"],
    query: `select op, count(*) as nodes
from nodes
group by op
order by nodes desc, op`,
  },
  {
    question: "What was lost or guessed while reading?", tables: ["warnings"],
    query: "from warnings",
  },
];

/**
 * @param {import("./tables.js").Table[]} tables that the profile has
 * @param {(query: string) => void} run
 */
export function examplesList(tables, run) {
  const there = new Set(tables.map((table) => table.name));
  const result = EXAMPLES.filter((one) => one.tables.every((name) => there.has(name)));
  return h("ul", { class: "plain-list" }, ...result.map(({ question, query }) => h("li", {},
    h("button", { type: "button", class: "plain", title: query, onclick: () => run(query) },
      question))));
}
