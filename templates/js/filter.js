// The field over the findings: shows those that hold the words typed and have the severity chosen.

/** Return whether a text holds some words, one behind the other, whatever their case and the spaces between them. */
export function holdsWords(text, words) {
  const [held, wanted] = [text, words].map((each) => each.toLowerCase().replace(/\s+/g, " "));
  return held.includes(wanted.trim());
}

/** Return every finding of the page in order: those in full, those that are rows of a table, and the expected ones. */
export function allFindings() {
  return [...document.querySelectorAll("#findings [data-severity]")];
}

/** Return the findings that can be seen: neither filtered out nor folded away. */
export function seenFindings() {
  return allFindings().filter((finding) => finding.checkVisibility());
}

/** Return what a finding says of this run: what the documentation says of its kind is found in all of that kind. */
function ownText(finding) {
  return [...finding.children].filter((part) => !part.matches(".learn")).map((part) => part.textContent).join(" ");
}

function applyFilter(query, severity, count) {
  const isOn = query.trim() !== "" || severity !== "";
  let shown = 0;
  for (const finding of allFindings()) {
    const fits = (!severity || finding.dataset.severity === severity) && holdsWords(ownText(finding), query);
    finding.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  for (const details of document.querySelectorAll("#findings > details")) {
    const fitting = details.querySelectorAll("[data-severity]:not([hidden])").length;
    if (!isOn) details.open = details.dataset.wasOpen === "yes";
    else {
      details.dataset.wasOpen ??= details.open ? "yes" : "no";
      details.open = fitting > 0;
    }
    if (!isOn) delete details.dataset.wasOpen;
    details.hidden = fitting === 0;
  }
  const none = "No finding matches. Clear the filter to see all.";
  count.textContent = !isOn ? "" : shown === 0 ? none : `${shown} of ${allFindings().length}`;
}

/** Let the field and the choice of severity filter; the field shows itself, for without a script it would do nothing. */
export function setUpFilter() {
  const form = document.getElementById("filter");
  if (!form) return;
  const [words, severity, count] = ["words", "severity", "count"].map((name) => form.elements[name]);
  const apply = () => applyFilter(words.value, severity.value, count);
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  words.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    words.value = "";
    apply();
    words.blur();
  });
}

/** Show every finding again. */
export function clearFilter() {
  const form = document.getElementById("filter");
  if (!form) return;
  form.reset();
  form.dispatchEvent(new Event("input"));
}
