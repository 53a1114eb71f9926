// SPDX-License-Identifier: Apache-2.0
// Points under roofs, both axes logarithmic: operations per byte against operations per second.  Read with
// the arrow keys, from the largest point on; says in words what it shows.

import {h, s, announce} from './dom.js';

const LEFT = 96, RIGHT = 16, TOP = 14, BELOW = 44;

// Powers of ten around positive numbers; at least a decade.
export function decades(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values)
    if (v > 0 && Number.isFinite(v)) {
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
  if (low > high) return [0, 1];
  const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
  return [from, Math.max(to, from + 1)];
}

// What a roof allows at an intensity: {label, slope (bytes a second), top (operations a second)}.
export const allowed = (roof, x) => (roof.top > 0 ? Math.min(roof.top, roof.slope * x) : roof.slope * x);

function place(points, roofs) {
  const ridges = roofs.filter((r) => r.top > 0).map((r) => r.top / r.slope);
  const [x0, x1] = decades([...points.map((p) => p.x), ...ridges]);
  const heights = roofs.flatMap((r) => [allowed(r, 10 ** x1)]);
  const [y0, y1] = decades([...points.map((p) => p.y), ...heights]);
  return {x0, x1, y0, y1};
}

/* points [{x, y, size (0 to 1), color, text}], the largest first; groups [{label, color}] of them, for the legend;
 * roofs [{label, slope, top, color}]; onOpen(i): Enter or a click on a point. */
export function roofline({label, points, groups, roofs, formatX, formatY, onOpen, height = 380}) {
  const {x0, x1, y0, y1} = place(points, roofs);
  const readout = h('p', {class: 'readout muted', 'aria-hidden': 'true'},
      'Point at an op, or focus the chart and use the arrow keys, to read it; Enter shows it in full.');
  const marks = s('g', {});
  const svg = s('svg', {
    class: 'chart roofline',
    role: 'img',
    tabindex: '0',
    'aria-label': `${label}. Use the arrow keys to read single ops.`,
    height
  });
  let width = 0, at = -1;
  const px = (x) => LEFT + (Math.log10(x) - x0) / (x1 - x0) * (width - LEFT - RIGHT);
  const py = (y) => TOP + (y1 - Math.log10(y)) / (y1 - y0) * (height - TOP - BELOW);
  const radius = (p) => 4 + 12 * Math.sqrt(p.size);
  const mark = (i, say) => {
    at = Math.max(0, Math.min(points.length - 1, i));
    const p = points[at];
    marks.replaceChildren(s('circle', {class: 'mark', cx: px(p.x), cy: py(p.y), r: radius(p) + 4}));
    readout.textContent = p.text;
    if (say) announce(p.text);
  };
  const nearest = (e) => {
    const box = svg.getBoundingClientRect();
    let best = -1, distance = 32;
    points.forEach((p, i) => {
      const d = Math.hypot(px(p.x) - (e.clientX - box.left), py(p.y) - (e.clientY - box.top)) - radius(p);
      if (d < distance) {
        distance = d;
        best = i;
      }
    });
    return best;
  };
  svg.addEventListener('pointermove', (e) => {
    const i = nearest(e);
    if (i >= 0) mark(i, false);
  });
  svg.addEventListener('click', (e) => {
    const i = nearest(e);
    if (i >= 0) onOpen(i);
  });
  svg.addEventListener('keydown', (e) => {
    const step = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity}[e.key];
    if (!points.length || (step === undefined && e.key !== 'Enter')) return;
    e.preventDefault();
    if (e.key === 'Enter') {
      if (at >= 0) onOpen(at);
    } else
      mark(at + step, true);
  });
  const axis = () => {
    const out = [];
    for (let e = x0; e <= x1; e++)
      out.push(s('line', {class: 'grid', x1: px(10 ** e), x2: px(10 ** e), y1: TOP, y2: height - BELOW}),
          s('text', {class: 'tick', x: px(10 ** e), y: height - BELOW + 16, 'text-anchor': 'middle'},
              formatX(10 ** e)));
    for (let e = y0; e <= y1; e++)
      out.push(s('line', {class: 'grid', x1: LEFT, x2: width - RIGHT, y1: py(10 ** e), y2: py(10 ** e)}),
          s('text', {class: 'tick', x: LEFT - 6, y: py(10 ** e) + 4, 'text-anchor': 'end'}, formatY(10 ** e)));
    out.push(s('text', {class: 'tick', x: (LEFT + width - RIGHT) / 2, y: height - 8, 'text-anchor': 'middle'},
        'operations for each byte'));
    return out;
  };
  const roof = (r) => {
    const ridge = r.top > 0 ? r.top / r.slope : Infinity;
    const begin = Math.max(10 ** x0, 10 ** y0 / r.slope), turn = Math.min(ridge, 10 ** x1);
    const d = `M${px(begin)} ${py(allowed(r, begin))}L${px(turn)} ${py(allowed(r, turn))}` +
        (turn < 10 ** x1 ? `H${px(10 ** x1)}` : '');
    return [
      s('path', {class: `roof series-${r.color}`, d}),
      ...(ridge < 10 ** x1 ? [s('circle', {class: `ridge series-${r.color}`, cx: px(ridge), cy: py(r.top), r: 4})] :
                             [])
    ];
  };
  const draw = () => {
    const w = Math.floor(svg.getBoundingClientRect().width) || 600;
    if (w === width) return;
    width = w;
    svg.replaceChildren(...axis(), ...roofs.flatMap(roof),
        ...points.map((p) => s('circle', {class: `point series-${p.color}`, cx: px(p.x), cy: py(p.y), r: radius(p)})),
        marks);
    if (at >= 0) mark(at, false);
  };
  new ResizeObserver(draw).observe(svg);
  return h('figure', {class: 'figure'}, svg,
      h('ul', {class: 'legend'},
          [...roofs, ...groups].map((r) => h('li', {}, h('i', {class: `swatch series-${r.color}`}), r.label))),
      readout);
}
