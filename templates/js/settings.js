// What the reader chooses: light or dark, local time or UTC, paper, and what goes to the clipboard.

const THEMES = ["light", "dark"];
const COPIED_MS = 2000;
// What fits on a page of US letter, under the tiles and the timeline's title and signs; `full`: without the tiles.
const PAPER_PX = { width: 686, height: 630, full: 770 };

function showTimes(zone) {
  for (const time of document.querySelectorAll("time[data-wall]")) {
    const wall = Number(time.dataset.wall) * 1000;
    time.textContent = time.dataset.form === "clock" ? zone.timeOfDay(wall) : `${zone.dateTime(wall)} ${zone.name}`;
  }
  for (const button of document.querySelectorAll("[data-zone]"))
    button.setAttribute("aria-pressed", String((button.dataset.zone === "utc") === zone.useUtc));
}

/** Keep a choice for other reports and other days, as far as the browser does. */
export function remember(key, value) {
  try {
    localStorage.setItem(`gpu-report-${key}`, value);
  } catch {
    // Storage is off for files in some browsers; the choice then lasts as long as the page.
  }
}

/** Return what was chosen before, or null. */
export function remembered(key) {
  try {
    return localStorage.getItem(`gpu-report-${key}`);
  } catch {
    return null;
  }
}

function isDark() {
  return (
    (document.documentElement.dataset.theme ??
      (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark"
  );
}

export function setUpTheme(redraw) {
  const button = document.getElementById("theme");
  const chosen = remembered("theme");
  if (THEMES.includes(chosen)) document.documentElement.dataset.theme = chosen;
  const label = () => {
    button.textContent = isDark() ? "Light" : "Dark";
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    remember("theme", document.documentElement.dataset.theme);
    label();
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    label();
    redraw();
  });
  label();
}

export function setUpZone(zone, redraw) {
  zone.useUtc = remembered("zone") === "utc";
  for (const button of document.querySelectorAll("[data-zone]")) {
    button.addEventListener("click", () => {
      zone.useUtc = button.dataset.zone === "utc";
      remember("zone", button.dataset.zone);
      showTimes(zone);
      redraw();
    });
  }
  showTimes(zone);
}

export function setUpPrint(redraw) {
  let opened = [];
  let theme;
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open], .learn, .appendix)")];
    for (const details of opened) details.open = true;
    theme = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = "light";
    redraw(PAPER_PX);
  });
  window.addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    redraw();
  });
}

export function setUpCopy() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Done"; // as wide as Copy: nothing moves
        setTimeout(() => (button.textContent = "Copy"), COPIED_MS);
      } catch {
        getSelection().selectAllChildren(button.previousElementSibling); // no clipboard here: mark it for Ctrl-C
      }
    });
  }
}
