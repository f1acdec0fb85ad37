/** The links at the top for those who use keys: over the head, to the content or to its table. */

/**
 * What a view is read from first by keys; of the timeline the lanes are the table.
 * @param {HTMLElement} main
 */
function tableIn(main) {
  const result = [...main.querySelectorAll("[role=grid], canvas.tl-lanes")]
    .find((one) => one instanceof HTMLElement && one.checkVisibility());
  return result instanceof HTMLElement ? result : null;
}

/**
 * Let the links do without the address, which says what is shown.
 * @param {HTMLElement} main
 */
export function skipLinks(main) {
  const toContent = document.getElementById("to-content");
  const toTable = document.getElementById("to-table");
  toContent?.addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  toTable?.addEventListener("click", (event) => {
    event.preventDefault();
    const table = tableIn(main);
    table?.scrollIntoView({ block: "nearest" });
    table?.focus();
  });
  // There is a table when there is one by the time that somebody comes here, from either side.
  addEventListener("focusin", ({ target }) => {
    const isNear = target instanceof Element && (target.matches(".skip") || target.closest("#header"));
    if (toTable && isNear && target !== toTable) toTable.hidden = !tableIn(main);
  });
}
