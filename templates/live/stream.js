// The connection to the server: it is made anew by itself, and goes on where it was.

const SILENT_MS = 8000; // the server says something every five seconds

/** Call `on.everything` and `on.tick` with what comes, and `on.lost` with the seconds of silence where nothing does. */
export function follow(on) {
  let heard = performance.now();
  const source = new EventSource("events");
  for (const name of ["everything", "tick"]) {
    source.addEventListener(name, (event) => {
      heard = performance.now();
      on[name](JSON.parse(event.data));
    });
  }
  setInterval(() => {
    const silent = performance.now() - heard;
    if (silent > SILENT_MS) on.lost(silent / 1000);
  }, 1000);
}
