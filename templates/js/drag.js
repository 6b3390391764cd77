// A press on the timeline: one that stays where it is picks a moment, a drag chooses a window of time.

const CLICK_SLOP_PX = 5; // a pointer that moved less than this between down and up was a click, not a drag

/**
 * Watch a mouse or pen on `chart`. `onClick(event)` is called for a click; while a drag goes on, `band` covers what it
 * chooses, and at its end `onWindow(from, to)` gets the page's x of both ends in px, the left one first. Escape ends a
 * drag without. A finger only clicks: where it drags, it scrolls the page.
 */
export class Drag {
  constructor(chart, band, onClick, onWindow) {
    Object.assign(this, { chart, band, onClick, onWindow, pressed: null });
    chart.addEventListener("pointerdown", (event) => this.press(event));
    window.addEventListener("pointermove", (event) => this.move(event));
    window.addEventListener("pointerup", (event) => this.release(event));
    window.addEventListener("pointercancel", () => this.cancel());
    window.addEventListener("keydown", (event) => event.key === "Escape" && this.cancel());
  }

  press(event) {
    this.cancel();
    if (event.button === 0) this.pressed = { x: event.clientX, y: event.clientY };
  }

  /** Return whether the press has become a drag. */
  isDrag({ clientX, clientY, pointerType }) {
    if (!this.pressed || pointerType === "touch") return false;
    return !this.band.hidden || Math.hypot(clientX - this.pressed.x, clientY - this.pressed.y) > CLICK_SLOP_PX;
  }

  move(event) {
    if (!this.isDrag(event)) return;
    const box = this.band.offsetParent?.getBoundingClientRect() ?? this.chart.getBoundingClientRect();
    const [left, right] = this.ends(event);
    this.band.hidden = false;
    Object.assign(this.band.style, { left: `${left - box.left}px`, width: `${right - left}px` });
  }

  release(event) {
    const { pressed } = this;
    const isDrag = this.isDrag(event);
    const [left, right] = pressed ? this.ends(event) : [];
    this.cancel();
    if (!pressed || event.button > 0) return;
    if (isDrag) this.onWindow(left, right);
    else if (Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) <= CLICK_SLOP_PX) this.onClick(event);
  }

  cancel() {
    this.pressed = null;
    this.band.hidden = true;
  }

  ends(event) {
    const [one, other] = [this.pressed.x, event.clientX];
    return [Math.min(one, other), Math.max(one, other)];
  }
}
