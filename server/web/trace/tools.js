// SPDX-License-Identifier: Apache-2.0
// What the pointer does on the tracks: one of four tools, and a click.

import {itemAt} from './layout.js';

// In the order of the keys 1 to 4.
export const TOOLS = [
  ['select', 'Select', 'drag a box over tracks to sum up its events'],
  ['move', 'Move', 'drag moves the window'],
  ['zoom', 'Zoom', 'drag up zooms in, drag down out'],
  ['time', 'Time', 'drag to mark a stretch of time and sum it up'],
];
const CLICK = 4;  // px: less is no drag

// The time between the begin of a drag and where it is now.
function between(view, start, x) {
  const a = start.t0 + start.x / view.width * (start.t1 - start.t0),
        b = view.timeAt(Math.max(0, Math.min(view.width, x)));
  return [Math.min(a, b), Math.max(a, b)];
}

// Keys of the tracks between two heights of the canvas.
function tracksBetween(view, y0, y1) {
  const out = [], [from, to] = [Math.min(y0, y1), Math.max(y0, y1)];
  const first = Math.min(itemAt(view.items, from), itemAt(view.items, view.contentY(from)));
  for (const item of view.items.slice(first)) {
    const y = view.yOf(item);
    if (item.kind === 'thread' && y < to && y + item.height > from) out.push(item.key);
  }
  return out;
}

const DRAG = {
  select(view, start, e) {
    view.range = between(view, start, e.offsetX);
    view.rangeTracks = tracksBetween(view, start.y, e.offsetY);
    view.invalidate();
  },
  move(view, start, e) {
    const by = (e.offsetX - start.x) / view.width * (start.t1 - start.t0);
    view.setWindow(start.t0 - by, start.t1 - by);
    view.scroller.scrollTop = start.top - (e.offsetY - start.y);
  },
  zoom(view, start, e) {
    const factor = Math.exp((e.offsetY - start.y) * 0.012), share = start.x / view.width;
    const at = start.t0 + share * (start.t1 - start.t0), span = (start.t1 - start.t0) * factor;
    view.setWindow(at - share * span, at + (1 - share) * span);
  },
  time(view, start, e) {
    view.range = between(view, start, e.offsetX);
    view.rangeTracks = null;
    view.invalidate();
  },
};

// A press of the main button: a click selects (with Ctrl one more), a drag does what the tool does.
export function press(view, e) {
  if (e.button !== 0) return;
  const {canvas} = view;
  canvas.focus({preventScroll: true});
  canvas.setPointerCapture(e.pointerId);
  const start = {x: e.offsetX, y: e.offsetY, t0: view.t0, t1: view.t1, top: view.scroller.scrollTop};
  const tool = e.shiftKey ? 'time' : view.tool;
  let moved = false;
  const move = (ev) => {
    if (!moved && Math.hypot(ev.offsetX - start.x, ev.offsetY - start.y) < CLICK) return;
    moved = true;
    DRAG[tool](view, start, ev);
  };
  const up = (ev) => {
    canvas.removeEventListener('pointermove', move);
    canvas.removeEventListener('pointerup', up);
    canvas.removeEventListener('pointercancel', up);
    if (moved) {
      if (tool === 'select' || tool === 'time') view.setRange(view.range, view.rangeTracks);
      return;
    }
    const found = view.hit(ev.offsetX, ev.offsetY);
    if (ev.ctrlKey || ev.metaKey)
      view.pick(found);
    else {
      view.setRange(null);
      view.select(found, false);
    }
  };
  canvas.addEventListener('pointermove', move);
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
}
