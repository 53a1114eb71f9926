// SPDX-License-Identifier: Apache-2.0
// Boxes whose areas mean something: a treemap, or a map of memory over time.  Read with the arrow keys, one
// box after the other; Enter or a click shows one in full.

import {h, s, announce} from './dom.js';
import {short} from './format.js';

const LETTER = 6.4;  // px, of the labels

// Places {x, y, w, h} of VALUES, which descend, in a box: a squarified treemap (Bruls, Huizing, van Wijk).
export function treemap(values, width, height) {
  const out = [];
  let sum = 0;
  for (const v of values) sum += v;
  if (!(sum > 0) || !(width > 0) || !(height > 0)) return values.map(() => ({x: 0, y: 0, w: 0, h: 0}));
  const scale = width * height / sum;
  let x = 0, y = 0, w = width, hh = height, i = 0;
  while (i < values.length) {
    const side = Math.min(w, hh);
    // A row grows as long as its worst box comes nearer to a square.
    let row = 0, best = Infinity, end = i;
    for (; end < values.length; end++) {
      const next = row + values[end] * scale;
      const most = values[i] * scale, least = values[end] * scale;
      const worst = Math.max(side * side * most / (next * next), next * next / (side * side * least));
      if (worst > best) break;
      best = worst;
      row = next;
    }
    const thick = side > 0 ? row / side : 0;
    let along = 0;
    for (; i < end; i++) {
      const length = thick > 0 ? values[i] * scale / thick : 0;
      out.push(w < hh ? {x: x + along, y, w: length, h: thick} : {x, y: y + along, w: thick, h: length});
      along += length;
    }
    if (w < hh) {
      y += thick;
      hh = Math.max(0, hh - thick);
    } else {
      x += thick;
      w = Math.max(0, w - thick);
    }
  }
  return out;
}

function lettering(item, p) {
  const room = Math.floor((p.w - 8) / LETTER);
  if (room < 4 || p.h < 17) return [];
  const lines = [s('text', {class: 'box-name', x: p.x + 4, y: p.y + 13}, short(item.name, room))];
  if (item.note && p.h >= 32) lines.push(s('text', {x: p.x + 4, y: p.y + 27}, short(item.note, room)));
  return lines;
}

/* items [{name, note, text (read), tone (-1: a frame)}]; place(width, height): where they stand, in their
 * order, later ones over earlier ones; axes(width, height): elements below them; onOpen(i). */
export function boxes({label, items, place, axes, onOpen, height = 320}) {
  const hint = 'Point at a box, or focus the picture and use the arrow keys, to read it; Enter shows it in full.';
  const readout = h('p', {class: 'readout muted', 'aria-hidden': 'true'}, hint);
  const marks = s('g', {});
  const svg = s('svg', {
    class: 'chart boxes',
    role: 'img',
    tabindex: '0',
    'aria-label': `${label}. Use the arrow keys to read single boxes.`,
    height
  });
  let width = 0, at = -1, places = [];
  const mark = (i, say) => {
    at = Math.max(0, Math.min(items.length - 1, i));
    const p = places[at];
    marks.replaceChildren(s('rect', {class: 'box-mark', x: p.x, y: p.y, width: Math.max(2, p.w), height: Math.max(2, p.h)}));
    readout.textContent = items[at].text;
    if (say) announce(items[at].text);
  };
  const under = (e) => {
    const frame = svg.getBoundingClientRect(), x = e.clientX - frame.left, y = e.clientY - frame.top;
    for (let i = places.length - 1; i >= 0; i--) {
      const p = places[i];
      if (x >= p.x && x < p.x + p.w && y >= p.y && y < p.y + p.h) return i;
    }
    return -1;
  };
  svg.addEventListener('pointermove', (e) => under(e) >= 0 && mark(under(e), false));
  svg.addEventListener('click', (e) => under(e) >= 0 && onOpen(under(e)));
  svg.addEventListener('keydown', (e) => {
    const step = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -Infinity, End: Infinity}[e.key];
    if (!items.length || (step === undefined && e.key !== 'Enter')) return;
    e.preventDefault();
    if (e.key === 'Enter') {
      if (at >= 0) onOpen(at);
    } else
      mark(at + step, true);
  });
  const draw = () => {
    const w = Math.floor(svg.getBoundingClientRect().width) || 600;
    if (w === width) return;
    width = w;
    places = place(width, height);
    svg.replaceChildren(...(axes ? axes(width, height) : []),
        ...items.flatMap((item, i) => {
          const p = places[i];
          if (!(p.w > 0.3 && p.h > 0.3)) return [];
          return [
            s('rect', {
              class: item.tone < 0 ? 'box frame' : 'box',
              fill: item.tone < 0 ? null : `var(--tone-${item.tone})`,
              x: p.x.toFixed(2),
              y: p.y.toFixed(2),
              width: p.w.toFixed(2),
              height: p.h.toFixed(2)
            }),
            ...(item.tone < 0 ? [] : lettering(item, p))
          ];
        }),
        marks);
    if (at >= 0) mark(at, false);
  };
  new ResizeObserver(draw).observe(svg);
  return h('figure', {class: 'figure'}, svg, readout);
}
