"use strict";
// Draws the figures of a report and folds the tables that say the same; prints with all open.
(() => {
  const plots = [...document.querySelectorAll(".plot")];
  const config = { responsive: true, displayModeBar: false, showTips: false };
  const pen = document.createElement("canvas").getContext("2d");
  const wide = (text, size) => {
    pen.font = size + "px system-ui, sans-serif";
    return pen.measureText(text).width;
  };
  const narrow = 600;
  // Names of rows: a bar must have room beside them. The size at the end stays.
  const shorter = (text) => {
    const [, name, size] = /^(.*?)(\s{2}\S+ \S+)?$/.exec(text);
    return (name.length > (name[0] === "(" ? 16 : 12) ? "…" + name.slice(-11) : name) + (size || "").replace(/\s+/, " ");
  };
  const fit = (drawn, width) => {
    const { xaxis, yaxis, margin } = drawn.layout;
    const ticks = yaxis && yaxis.ticktext;
    if (width < narrow) {
      if (xaxis && xaxis.title && xaxis.title.text) {
        xaxis.title.text = xaxis.title.text.replace(" since the profile's start", "");
      }
      if (ticks) {
        yaxis.ticktext = ticks.map(shorter);
        yaxis.tickfont = { size: 9 };
        yaxis.title = undefined;
      }
      for (const axis of [xaxis, yaxis]) if (axis && axis.title) axis.automargin = true;
      if (xaxis && !xaxis.tickvals) xaxis.nticks = 5;
      for (const trace of drawn.data) {
        if (trace.name && trace.name.length > 40) trace.name = trace.name.slice(0, 22) + "…" + trace.name.slice(-17);
      }
      Object.assign(margin, { l: Math.min(margin.l, 44), r: 12 });
    }
    // The names of steps that do not fit beside the one before are left out.
    if (!xaxis || !xaxis.range || !drawn.layout.annotations) return;
    const names = ticks ? Math.max(0, ...yaxis.ticktext.map((one) => wide(one, 9))) + 12 : 0;
    const inside = width - Math.max(margin.l, names) - margin.r;
    const scale = inside / (xaxis.range[1] - xaxis.range[0]);
    let free = -Infinity;
    drawn.layout.annotations = drawn.layout.annotations.filter((one) => {
      if (one.name !== "step") return true;
      const start = (one.x - xaxis.range[0]) * scale;
      const end = start + wide(one.text, 10) + 10;
      if (start < free || end > inside + margin.r) return false;
      free = end;
      return true;
    });
  };
  const draw = async (plot) => {
    const data = document.getElementById(plot.id + "-data");
    const drawn = JSON.parse(data.textContent);
    const figure = plot.closest("figure");
    plot.style.height = plot.dataset.height + "px";
    figure.classList.add("drawn"); // shown first: what is hidden has no width to draw for
    try {
      fit(drawn, plot.clientWidth);
      await Plotly.react(plot, drawn.data, drawn.layout, config);
    } catch (error) {
      figure.classList.remove("drawn");
      throw error;
    }
  };
  const folded = [...document.querySelectorAll("details")];
  const open = () => folded.filter((one) => !one.open).map((one) => ((one.open = true), one));
  let opened = [];
  let widths = false;
  window.addEventListener("beforeprint", () => {
    opened = open();
    widths = true;
    for (const plot of plots) {
      plot.style.width = "660px";
      if (plot.data) Plotly.Plots.resize(plot);
    }
  });
  window.addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
    for (const plot of widths ? plots : []) {
      plot.style.width = "";
      if (plot.data) Plotly.Plots.resize(plot);
    }
    opened = [];
    widths = false;
  });
  let drawnFor = document.documentElement.clientWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const now = document.documentElement.clientWidth;
      if (now === drawnFor || widths) return; // a phone's bars that come and go change the height
      drawnFor = now;
      plots.forEach((plot) => draw(plot).catch(() => {}));
    }, 200);
  });
  Promise.allSettled(plots.map(draw)).then((results) => {
    for (const one of folded) {
      const figure = one.closest("figure");
      if (!figure || figure.classList.contains("drawn")) one.open = false;
    }
    document.documentElement.dataset.ready = results.every((r) => r.status === "fulfilled");
  });
})();
