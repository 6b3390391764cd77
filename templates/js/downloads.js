// What was recorded, as CSV from the page itself: each GPU, the driver's own readings, the host, and the epochs.

import { element } from "./words.js";

/** Return rows of cells as CSV; a missing cell is empty. Cells are numbers, and heads our own names: nothing to quote. */
function csv(head, rows) {
  return `${[head, ...rows].map((row) => row.map((cell) => cell ?? "").join(",")).join("\n")}\n`;
}

/** Return series as one CSV: time since the start, wall time, every recorded quantity. */
export function samplesCsv(store, parts) {
  const names = [...new Set(parts.flatMap((part) => [...part.columns.keys()]))];
  const rows = parts.flatMap((part) => {
    const columns = names.map((name) => part.columns.get(name));
    return Array.from(part.times, (time, i) => [time, ...columns.map((column) => column?.at(i))]);
  });
  if (parts.length > 1) rows.sort(([a], [b]) => a - b);
  const wall = (time) => ((store.startWall + time) / 1000).toFixed(3);
  return csv(
    ["t_s", "wall_s", ...names],
    rows.map(([time, ...cells]) => [(time / 1000).toFixed(3), wall(time), ...cells]),
  );
}

/** Return the epochs as CSV: where they lie, and what is known of each. */
export function epochsCsv(run) {
  return csv(["run", "epoch", "start_s", "end_s", ...run.tables.epochs.slice(4).map(({ name }) => name)], run.epochs);
}

/** Return what a download holds, by its name: gpu-0, ring-0, host or epochs. */
function contents(store, name) {
  if (name === "epochs") return epochsCsv(store.run);
  if (name === "host") return samplesCsv(store, [store.host]);
  const [kind, index] = name.split("-");
  const gpu = store.gpus.find((each) => String(each.index) === index);
  return samplesCsv(store, kind === "ring" ? [...gpu.rings.values()] : [gpu.series]);
}

/** Let the buttons write their files. */
export function setUpDownloads(store) {
  for (const button of document.querySelectorAll("[data-csv]")) {
    button.disabled = false;
    button.addEventListener("click", () => {
      const name = button.dataset.csv;
      const link = element("a", { download: `${name}.csv` });
      link.href = URL.createObjectURL(new Blob([contents(store, name)], { type: "text/csv" }));
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
}
