// SPDX-License-Identifier: Apache-2.0
// A value over sessions: points, the levels that they keep to, and where a level changes.

import {h, s} from './dom.js';
import {short} from './format.js';
import {frame, ticks, yOf} from './chart.js';

const LEFT = 76, RIGHT = 16;

// Marks of an axis around LEAST to GREATEST, about N of them: from 0 where that is near.
export function marksAround(least, greatest, n) {
  if (least >= 0 && least < greatest / 2) return ticks(greatest, n);
  const room = (greatest - least) * 0.15 || Math.abs(greatest) * 0.05 || 1;
  const step = ticks(greatest - least + 2 * room, n)[1];
  const out = [];
  for (let v = Math.floor((least - room) / step) * step; v < greatest + room + step; v += step) out.push(v);
  return out;
}

/* values: in their order; names[i], texts[i]: a label below, and what the reader is told; levels [{from, to (of
 * the first and last), mean}]; changes [{at, label, worse}]; onOpen(i) */
export function series({label, values, names, texts, levels, changes, format, onOpen, height = 260}) {
  const n = values.length;
  const top = marksAround(Math.min(...values), Math.max(...values), 4);
  const xAt = (i, width) => LEFT + (i + 0.5) * (width - LEFT - RIGHT) / Math.max(1, n);
  const y = (v) => yOf(v, top, height).toFixed(2);
  const f = frame({
    label,
    height,
    top,
    format,
    n,
    xAt,
    onOpen,
    hint: 'Point at the chart, or focus it and use the arrow keys, to read values; Enter opens the session.',
    describe: (i) => texts[i],
    onMark: (i, width) =>
        [s('line', {class: 'cursor', x1: xAt(i, width), x2: xAt(i, width), y1: 4, y2: height - 24}),
         s('circle', {class: 'point-mark', cx: xAt(i, width), cy: y(values[i]), r: 6})],
  });
  const paint = (width) => {
    const half = (width - LEFT - RIGHT) / Math.max(1, n) / 2;
    const every = Math.max(1, Math.ceil(n * 96 / Math.max(1, width - LEFT)));
    const line = [...values].map((v, i) => `${i ? 'L' : 'M'}${xAt(i, width).toFixed(2)} ${y(v)}`).join('');
    return [
      ...changes.flatMap((c) => {
        const x = xAt(c.at, width) - half, end = x > width * 0.7;
        const cls = c.worse ? 'note' : 'note better';
        return [
          s('line', {class: cls, x1: x, x2: x, y1: 4, y2: height - 24}),
          s('text', {class: cls, x: x + (end ? -6 : 6), y: 15, 'text-anchor': end ? 'end' : 'start'}, c.label)
        ];
      }),
      ...levels.map((l) => s('line', {
        class: 'level',
        x1: xAt(l.from, width) - half,
        x2: xAt(l.to, width) + half,
        y1: y(l.mean),
        y2: y(l.mean)
      })),
      s('path', {class: 'line thin', d: line}),
      ...[...values].map((v, i) => s('circle', {class: 'point', cx: xAt(i, width), cy: y(v), r: n > 200 ? 1.5 : 3})),
      ...names.flatMap(
          (name, i) => (i % every ?
                  [] :
                  [s('text', {class: 'tick', x: xAt(i, width), y: height - 6, 'text-anchor': 'middle'}, short(name, 14))])),
    ];
  };
  new ResizeObserver(() => f.draw(paint)).observe(f.svg);
  return h('figure', {class: 'figure'}, f.svg, f.readout);
}
