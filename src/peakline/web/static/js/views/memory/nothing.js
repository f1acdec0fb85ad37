/** What stands in place of the view where a profile has no records of allocations. */

import { h } from "../../core/dom.js";
import { empty, notices } from "../../core/states.js";

/** The remark that the view itself makes of a profile without memory. */
const NOTHING = "no_memory_events";

/** @param {{warnings: any[], notes: string[]}} told */
export function nothing({ warnings, notes }) {
  return h("div", {}, notices({ notes, warnings: warnings.filter((one) =>
    typeof one === "string" || one.kind !== NOTHING) }), empty("This profile has nothing about memory",
    "TensorFlow's profiler records memory of GPUs, and of CPUs with its BFC allocator; "
    + "PyTorch's with profile_memory=True, or as a snapshot (torch.cuda.memory._dump_snapshot); "
    + "JAX writes jax.profiler.save_device_memory_profile. RunMetadata, memory logs and "
    + "out-of-memory reports can be dropped on the list of sessions too."));
}
