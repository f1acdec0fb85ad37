/** The modules of a view, fetched together: the document names them. */

/** @param {string} view */
export function preload(view) {
  const named = document.querySelector(`meta[name="modules-of-${view}"]`);
  if (!(named instanceof HTMLMetaElement)) return;
  // Once is enough.
  named.remove();
  document.head.append(...named.content.split(" ").map((name) => {
    const link = document.createElement("link");
    link.rel = "modulepreload";
    link.href = new URL(`../../${name}`, import.meta.url).href;
    return link;
  }));
}
