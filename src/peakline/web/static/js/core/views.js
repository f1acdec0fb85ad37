/** Which views have something to show for a session, by its tools. */


/** @type {readonly {view: string, text: string, tools: readonly string[]}[]} */
const VIEWS = [
  { view: "memory", text: "Memory", tools: ["memory_profile", "memory_findings", "live_memory",
    "program_memory"] },
  { view: "timeline", text: "Timeline", tools: ["timeline"] },
  { view: "steps", text: "Steps", tools: ["step_breakdown", "framework_op_stats"] },
  { view: "graph", text: "Graph", tools: ["graph_scopes"] },
  { view: "sql", text: "SQL", tools: [] },
];

/**
 * The views worth a look besides the summary; SQL answers for whatever can be read.
 * @param {{tools: string[] | null}} session
 */
export function viewsOf({ tools }) {
  if (!tools?.length) return [];
  return VIEWS.filter((one) => !one.tools.length || one.tools.some((tool) => tools.includes(tool)));
}
