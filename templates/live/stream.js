// The connection to the server: it is made anew, and goes on where it was.

const SILENT_MS = 8000; // the server says something every five seconds
const AGAIN_MS = 3000;

/** Call `on.everything` and `on.tick` with what comes, and `on.lost` with the seconds of silence where nothing does. */
export function follow(on) {
  let heard = performance.now();
  let source = null;
  const connect = () => {
    source = new EventSource("events");
    for (const name of ["everything", "tick", "alive"]) {
      source.addEventListener(name, (event) => {
        heard = performance.now();
        if (on[name]) on[name](JSON.parse(event.data));
      });
    }
  };
  connect();
  setInterval(() => {
    const silent = performance.now() - heard;
    if (silent > SILENT_MS) on.lost(silent / 1000);
  }, 1000);
  setInterval(() => {
    if (source.readyState === EventSource.CLOSED) connect(); // any answer but 200 closes it for good
  }, AGAIN_MS);
}
