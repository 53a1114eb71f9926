// SPDX-License-Identifier: Apache-2.0
// A map of cells, rows by columns, dark where the value is great.  Arrow keys read single cells.

import {s, h, announce} from './dom.js';
import {short} from './format.js';

const LEFT = 150, ROW = 18, BOTTOM = 22;

/* values[row][column], NaN where there is nothing; describe(row, column) in words; open(row, column): what
 * Enter and a click do. */
export function heat({label, rows, columns, values, describe, open}) {
  let least = Infinity, greatest = -Infinity;
  for (const line of values)
    for (const v of line) {
      if (v < least) least = v;
      if (v > greatest) greatest = v;
    }
  const shade = (v) => (greatest > least ? 0.12 + 0.88 * (v - least) / (greatest - least) : 0.5);
  const height = rows.length * ROW + BOTTOM;
  const readout = h('p', {class: 'readout muted', 'aria-hidden': 'true'},
      'Point at the map, or focus it and use the arrow keys, to read values; Enter shows the trace there.');
  const mark = s('rect', {class: 'cell-mark', height: ROW - 2, visibility: 'hidden'});
  const svg = s('svg', {
    class: 'chart heat',
    role: 'img',
    tabindex: '0',
    height,
    'aria-label': `${label}. Use the arrow keys to read single values.`
  });
  let width = 0, at = null;
  const cell = () => (width - LEFT) / columns.length;
  const select = (r, c, say) => {
    at = [Math.max(0, Math.min(rows.length - 1, r)), Math.max(0, Math.min(columns.length - 1, c))];
    mark.setAttribute('x', LEFT + at[1] * cell());
    mark.setAttribute('y', at[0] * ROW);
    mark.setAttribute('width', Math.max(2, cell()));
    mark.setAttribute('visibility', 'visible');
    readout.textContent = describe(...at);
    if (say) announce(describe(...at));
  };
  const under = (e) => {
    const box = svg.getBoundingClientRect();
    const c = Math.floor((e.clientX - box.left - LEFT) / cell()), r = Math.floor((e.clientY - box.top) / ROW);
    return c >= 0 && r >= 0 && c < columns.length && r < rows.length ? [r, c] : null;
  };
  svg.addEventListener('pointermove', (e) => under(e) && select(...under(e), false));
  svg.addEventListener('click', (e) => under(e) && open(...under(e)));
  svg.addEventListener('keydown', (e) => {
    const move = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
      Home: [0, -Infinity], End: [0, Infinity]}[e.key];
    if (e.key === 'Enter' && at) open(...at);
    if (!move) return;
    e.preventDefault();
    if (at)
      select(at[0] + move[0], at[1] + move[1], true);
    else
      select(0, 0, true);
  });
  const draw = () => {
    const w = Math.floor(svg.getBoundingClientRect().width) || 600;
    if (w === width) return;
    width = w;
    const names = rows.map((name, r) => s('text',
        {class: 'tick', x: LEFT - 6, y: r * ROW + 13, 'text-anchor': 'end'}, short(name, 22)));
    const cells = values.map((line, r) => [...line].map((v, c) => Number.isFinite(v) ?
        s('rect', {
          class: 'series-0',
          x: (LEFT + c * cell()).toFixed(2),
          y: r * ROW,
          width: Math.max(0.5, cell() - (cell() > 4 ? 1 : 0)).toFixed(2),
          height: ROW - 2,
          'fill-opacity': shade(v).toFixed(3)
        }) : null));
    const every = Math.max(1, Math.ceil(columns.length * 64 / Math.max(1, width - LEFT)));
    const below = columns.map((name, c) => (c % every ? null : s('text',
        {class: 'tick', x: LEFT + (c + 0.5) * cell(), y: height - 6, 'text-anchor': 'middle'},
        short(name, 11))));
    svg.replaceChildren(...[names, cells, below].flat(2).filter(Boolean), mark);
    if (at) select(...at, false);
  };
  new ResizeObserver(draw).observe(svg);
  return h('figure', {class: 'figure'}, svg, readout);
}
