// SPDX-License-Identifier: Apache-2.0
// What lies over the tracks: the marked time, chosen events, arrows of flows, the time at the pointer.

import * as format from '../lib/format.js';
import {ROW} from './layout.js';
import {eachFlow} from './flows.js';

// Where the box of an event stands on the canvas (css px); null when its track is not shown or folded over it.
export function boxOf(view, key, row, ts, dur) {
  const item = view.byKey.get(key);
  if (!item || row >= Math.max(1, item.rows)) return null;
  return {x: view.xAt(ts), w: view.xAt(ts + dur) - view.xAt(ts), y: view.yOf(item) + 3 + row * ROW, h: ROW - 2};
}

const boxOfEvent = (view, e) => boxOf(view, e.key, e.row, e.ts, e.dur);

function arrow(c, a, b) {
  const ax = a.x + Math.min(a.w, 6), ay = a.y + a.h / 2, bx = b.x, by = b.y + b.h / 2;
  const bend = Math.max(20, Math.min(120, Math.abs(bx - ax) / 2));
  c.moveTo(ax, ay);
  c.bezierCurveTo(ax + bend, ay, bx - bend, by, bx, by);
  c.moveTo(bx - 7, by - 4);
  c.lineTo(bx, by);
  c.lineTo(bx - 7, by + 4);
}

function drawRange(view, c) {
  const {css} = view.colors, [t0, t1] = view.range;
  const x0 = view.xAt(t0), wide = Math.max(1, view.xAt(t1) - x0);
  c.fillStyle = css['trace-range'];
  if (!view.rangeTracks)
    c.fillRect(x0, 0, wide, view.tall);
  for (const key of view.rangeTracks || []) {
    const item = view.byKey.get(key);
    if (item) c.fillRect(x0, view.yOf(item), wide, item.height);
  }
  c.fillStyle = css.text;
  c.font = '12px system-ui, sans-serif';
  c.fillText(format.us(t1 - t0), Math.max(4, x0 + wide / 2 - 20), 16);
}

function drawFlows(view, c) {
  const m = view.current();
  const place = ([key, row, i]) => {
    const t = m.tracks.get(key);
    return boxOf(view, key, row, t.ts[i], t.end[i] - t.ts[i]);
  };
  c.strokeStyle = view.colors.css.muted;
  c.lineWidth = 1;
  c.beginPath();
  view.arrows = 0;
  eachFlow(m, view.t0, view.t1, (from, to) => {
    const a = place(from), b = place(to);
    if (!a || !b) return;
    arrow(c, a, b);
    view.arrows++;
  });
  c.stroke();
}

export function drawOverlay(view) {
  const c = view.overlay.getContext('2d'), {css} = view.colors;
  c.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  c.clearRect(0, 0, view.width, view.tall);
  if (view.range) drawRange(view, c);
  if (view.flowsShown) drawFlows(view, c);
  c.strokeStyle = css.select;
  c.lineWidth = 2.5;
  for (const e of view.picked) {
    const box = boxOfEvent(view, e);
    if (box) c.strokeRect(box.x - 1, box.y - 1, Math.max(4, box.w) + 2, box.h + 2);
  }
  c.lineWidth = 1.4;
  c.beginPath();
  for (const [from, to] of view.links || []) {
    const a = boxOfEvent(view, from), b = boxOfEvent(view, to);
    if (a && b) arrow(c, a, b);
  }
  c.stroke();
  if (view.pointerX >= 0) {
    c.fillStyle = css.muted;
    c.fillRect(Math.round(view.pointerX), 0, 1, view.tall);
  }
}
