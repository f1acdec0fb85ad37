/** Which views have something to show for a session, by its tools. */


/** @type {readonly {view: string, text: string, tools: readonly string[], isOfRanks?: boolean}[]} */
const VIEWS = [
  { view: "job", text: "Job", tools: ["job"], isOfRanks: true },
  { view: "memory", text: "Memory", tools: ["memory_profile", "memory_findings", "live_memory",
    "program_memory"] },
  { view: "timeline", text: "Timeline", tools: ["timeline"] },
  { view: "steps", text: "Steps", tools: ["step_breakdown", "framework_op_stats"] },
  { view: "graph", text: "Graph", tools: ["graph_scopes"] },
  { view: "sql", text: "SQL", tools: [] },
];

/**
 * The views worth a look besides the summary; SQL answers for whatever can be read, and only of several
 * hosts there is a job.
 * @param {{tools: string[] | null, hosts: string[]}} session
 */
export function viewsOf({ tools, hosts }) {
  if (!tools?.length) return [];
  return VIEWS.filter((one) => (!one.tools.length || one.tools.some((tool) => tools.includes(tool)))
    && (!one.isOfRanks || hosts.length > 1));
}

/**
 * The view at which a session opens where the address names no host: the job, if there is one.
 * @param {{tools: string[] | null, hosts: string[]}} session
 */
export function firstView(session) {
  return viewsOf(session)[0]?.view === "job" ? "job" : "summary";
}
