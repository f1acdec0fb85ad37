/** Which steps the ops are of, all that was recorded, one step, or a range of them; and where they ran. */

import { h } from "../../core/dom.js";
import { counted, time } from "../../core/format.js";

/** So many steps are proposed. */
const PROPOSED = 200;

export class StepFilter {
  /**
   * @param {import("./facts.js").Facts} facts
   * @param {import("./ops_part.js").OpTimes["steps"]} steps that are shown; null: all
   * @param {(changes: Record<string, string | null>) => void} choose other steps
   * @param {string} [given] what the address says, where there is no such step
   * @param {{planes: string[], plane: string | null}} [where] devices and hosts, and the one that is shown
   */
  constructor(facts, steps, choose, given = "", where = { planes: [], plane: null }) {
    const { context } = facts;
    const shown = steps ? steps.name || String(steps.step_id) : given;
    const from = field("step-of", "only step", shown);
    const to = field("step-to", "to", steps && steps.steps > 1
      ? steps.last_name || String(steps.last_id) : "");
    const names = h("datalist", { id: "step-names" });
    const change = () => choose({ step: from.value.trim() || null,
      last: from.value.trim() ? to.value.trim() || null : null, within: null });
    for (const one of [from, to]) {
      one.addEventListener("change", change);
      one.setAttribute("list", names.id);
    }
    const all = h("button", { type: "button", onclick: () => {
      from.value = to.value = "";
      change();
    } }, "All steps");
    all.hidden = !steps && !given;
    this.element = h("div", { class: "row-of" },
      h("label", { for: "step-of" }, "Only step"), from, h("label", { for: "step-to" }, "to"), to,
      names, all,
      steps && h("span", { class: "quiet" }, `what begins in ${counted(steps.steps, "step")}, ${
        time(steps.end_ps - steps.start_ps)}`),
      (where.planes.length > 1 || where.plane) && planePicker(where, choose),
      steps && steps.steps === 1 && h("a", { href: context.link("steps", { step: steps.step_id }) },
        "Why it takes so long"));
    void propose();

    async function propose() {
      try {
        const { data } = await facts.steps({ width: 0, limit: PROPOSED });
        const result = [...new Set(data.rows.map((step) => step.name || String(step.step_id)))];
        names.append(...result.map((name) => h("option", { value: name })));
      } catch {
        // Names can be typed all the same.
      }
    }
  }
}

/**
 * @param {{planes: string[], plane: string | null}} where
 * @param {(changes: Record<string, string | null>) => void} choose
 */
function planePicker({ planes, plane }, choose) {
  const picker = h("select", { id: "plane-of" }, h("option", { value: "" }, "all devices and hosts"),
    ...planes.map((name) => h("option", { value: name }, name)));
  picker.value = plane ?? "";
  picker.addEventListener("change", () => choose({ plane: picker.value || null, within: null, op: null }));
  return h("span", { class: "row-of tight" }, h("label", { for: "plane-of" }, "On"), picker);
}

/**
 * @param {string} id
 * @param {string} placeholder
 * @param {string} value
 */
function field(id, placeholder, value) {
  const input = h("input", { id, size: 14, placeholder: `${placeholder} …`, spellcheck: "false" });
  input.value = value;
  return input;
}
