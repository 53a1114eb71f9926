// SPDX-License-Identifier: Apache-2.0
// Drawing tracks into pixels.
//
// Boxes are written into an image buffer row by row, one colour per pixel column: the cost depends on
// the pixels in sight and not on the events.  A column that many events share takes the first one's
// colour, as strong as the share of its time that they cover (from the row's prefix sums).

import {aboveNear, above} from './model.js';

export const SHADES = 8;

// Little-endian RGBA pixel of [r, g, b].
const pixel = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;
const mix = (a, b, t) => a.map((v, i) => Math.round(v + (b[i] - v) * t));

function parseColor(text) {
  const m = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text.trim());
  return m ? m.slice(1).map((x) => parseInt(x, 16)) : [128, 128, 128];
}

// Pixels of the palette on the present background: tones[tone * SHADES + shade], edges[tone].
export function palette(style) {
  const ground = parseColor(style.getPropertyValue('--trace-ground'));
  const tones = new Uint32Array(17 * SHADES), edges = new Uint32Array(17);
  for (let t = 0; t < 17; t++) {
    const c = parseColor(style.getPropertyValue(t < 16 ? `--tone-${t}` : '--trace-dim'));
    for (let k = 0; k < SHADES; k++)
      tones[t * SHADES + k] = pixel(mix(ground, c, 0.35 + 0.65 * (k + 1) / SHADES));
    edges[t] = pixel(mix(c, ground, 0.55));
  }
  return {
    tones,
    edges,
    ground: pixel(ground),
    band: pixel(parseColor(style.getPropertyValue('--trace-band'))),
    line: pixel(parseColor(style.getPropertyValue('--trace-line'))),
    text: style.getPropertyValue('--trace-text').trim() || '#111',
    counter: pixel(parseColor(style.getPropertyValue('--tone-6'))),
    // as CSS, for what is drawn with strokes and text
    css: Object.fromEntries(
        ['text', 'muted', 'line', 'accent', 'select', 'trace-range', 'trace-shade', 'tone-0'].map(
            (n) => [n, style.getPropertyValue(`--${n}`).trim()])),
  };
}

/* Colours of one row of TRACK into LINE (one pixel per column).  T0: time of column 0; PX: columns per µs.
 * Boxes wide enough for text are appended to LABELS as (index, x0, x1).  Returns columns set. */
export function paintRow(line, track, d, t0, px, toneOf, colors, labels, widest) {
  const {ts, end, busy, name} = track, high = track.rowStart[d + 1], w = line.length;
  const t1 = t0 + w / px;
  let i = above(end, track.rowStart[d], high, t0), set = 0;
  while (i < high) {
    const start = ts[i];
    if (start >= t1) break;
    const tone = toneOf[name[i]];
    const x0 = (start - t0) * px, x1 = (end[i] - t0) * px;
    if (x1 - x0 >= 1.5) {
      const from = Math.max(0, Math.round(x0)), to = Math.min(w, Math.max(from + 1, Math.round(x1)));
      line.fill(colors.tones[tone * SHADES + SHADES - 1], from, to);
      if (to - from > 3 && to < w) line[to - 1] = colors.edges[tone];
      if (to - from >= widest) labels.push(i, from, to);
      set += to - from;
      i++;
      continue;
    }
    const column = Math.max(0, Math.floor(x0));
    if (column >= w) break;
    const j = Math.max(i + 1, aboveNear(ts, i, high, t0 + (column + 1) / px - 1e-12));
    // Do not swallow a wide box that begins in this column: it is the last one, if any.
    const stop = j - 1 > i && (end[j - 1] - ts[j - 1]) * px >= 1.5 ? j - 1 : j;
    const covered = (busy[stop + d] - busy[i + d]) * px;
    line[column] =
        colors.tones[tone * SHADES + Math.min(SHADES - 1, Math.max(1, Math.floor(covered * SHADES)))];
    set++;
    i = stop;
  }
  return set;
}

// A counter as an area: heights (0…H) per column.
export function paintCounter(heights, counter, t0, px, top, tall) {
  const {ts, value} = counter, n = ts.length, w = heights.length;
  let i = Math.max(0, above(ts, 0, n, t0) - 1);
  for (let x = 0; x < w; x++) {
    const until = t0 + (x + 1) / px;
    let v = i < n && ts[i] < until ? value[i] : 0;
    while (i + 1 < n && ts[i + 1] < until) v = Math.max(v, value[++i]);
    heights[x] = top > 0 ? Math.round(Math.max(0, v) / top * tall) : 0;
  }
}
