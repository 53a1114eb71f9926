// SPDX-License-Identifier: Apache-2.0
// The time axis and the overview above the tracks.

import * as format from '../lib/format.js';

// Round steps (1, 2, 5 · 10^n) of about 110 px.
export function stepFor(span, width) {
  const raw = span / Math.max(1, width / 110), power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
}

export function drawRuler(view) {
  const c = view.ruler.getContext('2d'), {css} = view.colors;
  c.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  c.clearRect(0, 0, view.width, 24);
  c.font = '11px system-ui, sans-serif';
  c.fillStyle = css.muted;
  c.strokeStyle = css.line;
  const step = stepFor(view.t1 - view.t0, view.width);
  const first = Math.ceil(view.t0 / step);
  c.beginPath();
  for (let i = 0; i < 200 && (first + i) * step <= view.t1; i++) {
    const t = (first + i) * step, x = view.xAt(t);
    c.moveTo(x + 0.5, 12);
    c.lineTo(x + 0.5, 24);
    c.fillText(format.axisUs(t, step, Math.max(Math.abs(view.t0), Math.abs(view.t1))), x + 4, 16);
  }
  c.stroke();
  c.fillStyle = css.accent;
  for (const {t0, t1} of view.bookmarks) flag(c, view.xAt((t0 + t1) / 2));
}

// A bookmark's: at the middle of its window.
function flag(c, x) {
  c.fillRect(x, 0, 1.5, 24);
  c.beginPath();
  c.moveTo(x, 0);
  c.lineTo(x + 9, 4);
  c.lineTo(x, 8);
  c.fill();
}

// A picture of the whole trace, made once: per column the share of time covered by top-level events.
export function density(m, columns, color, tall, [lo, hi]) {
  const share = new Float32Array(columns), px = columns / Math.max(1e-9, hi - lo);
  for (const t of m.tracks.values()) {
    if (!t.rows) continue;
    for (let i = t.rowStart[0]; i < t.rowStart[1]; i++) {
      const a = (t.ts[i] - lo) * px, b = (t.end[i] - lo) * px;
      const from = Math.max(0, Math.floor(a)), to = Math.min(columns - 1, Math.floor(b));
      if (from === to)
        share[from] += b - a;
      else
        for (let x = from; x <= to; x++) share[x] += Math.min(b, x + 1) - Math.max(a, x);
    }
  }
  let top = 0;
  for (const v of share)
    if (v > top) top = v;
  const picture = document.createElement('canvas');
  picture.width = columns;
  picture.height = tall;
  const c = picture.getContext('2d');
  c.fillStyle = color;
  for (let x = 0; x < columns; x++) {
    if (!(share[x] > 0)) continue;
    const v = Math.max(1, Math.sqrt(share[x] / top) * (tall - 6));
    c.fillRect(x, tall - v, 1, v);
  }
  return picture;
}

export function drawMinimap(view) {
  const c = view.minimap.getContext('2d'), {css} = view.colors, w = view.minimap.width,
        tall = view.minimap.height;
  const [lo, hi] = view.full, x = (t) => (t - lo) / (hi - lo) * w;
  c.clearRect(0, 0, w, tall);
  c.drawImage(view.density, 0, 0);
  c.fillStyle = css['trace-shade'];
  c.fillRect(0, 0, x(view.t0), tall);
  c.fillRect(x(view.t1), 0, w - x(view.t1), tall);
  c.strokeStyle = css.accent;
  c.lineWidth = 2;
  c.strokeRect(x(view.t0) + 1, 1, Math.max(2, x(view.t1) - x(view.t0) - 2), tall - 2);
}
