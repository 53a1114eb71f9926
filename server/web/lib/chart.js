// SPDX-License-Identifier: Apache-2.0
// Small charts in SVG.  Each can be read with the arrow keys; each says in words what it shows.

import {h, s, announce} from './dom.js';
import {short} from './format.js';

export const SERIES = 9;  // .series-0 … .series-8 of style.css

// Round numbers from 0 to TOP, about N of them.
export function ticks(top, n) {
  if (!(top > 0)) return [0, 1];
  const raw = top / n;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= raw * 0.999);
  const out = [];
  for (let i = 0; i * step < top + step * 0.999; i++) out.push(i * step);
  return out;
}

export function legend(series) {
  return h('ul', {class: 'legend'},
      series.map((x) => h('li', {}, h('i', {class: `swatch series-${x.color}`}), x.label)));
}

// The same for bytes: steps are powers of two.
export function byteTicks(top, n) {
  if (!(top > 0)) return [0, 1024];
  const step = 2 ** Math.ceil(Math.log2(top / n));
  const out = [];
  for (let i = 0; i * step < top + step * 0.999; i++) out.push(i * step);
  return out;
}

const HINT = 'Point at the chart, or focus it and use the arrow keys, to read values.';

// What charts share: a frame with a y axis, whose marks TOP has, a moving mark, a line of text under it.
// onOpen(i): Enter or a click where i is marked.
export function frame({label, height, top, format, n, xAt, onMark, describe, onOpen, hint = HINT}) {
  const readout = h('p', {class: 'readout muted', 'aria-hidden': 'true'}, hint);
  const marks = s('g', {});
  const svg = s('svg', {
    class: 'chart',
    role: 'img',
    tabindex: '0',
    'aria-label': `${label}. Use the arrow keys to read single values.`,
    height
  });
  let width = 0, at = -1;
  const mark = (i, say) => {
    at = Math.max(0, Math.min(n - 1, i));
    marks.replaceChildren(...onMark(at, width, height));
    readout.textContent = describe(at);
    if (say) announce(describe(at));
  };
  svg.addEventListener('pointermove', (e) => {
    const x = e.clientX - svg.getBoundingClientRect().left;
    let best = 0, low = 0, high = n - 1;
    while (low <= high) {  // positions ascend
      const middle = (low + high) >> 1;
      if (xAt(middle, width) <= x) {
        best = middle;
        low = middle + 1;
      } else
        high = middle - 1;
    }
    if (best + 1 < n && Math.abs(xAt(best + 1, width) - x) < Math.abs(xAt(best, width) - x)) best++;
    if (n) mark(best, false);
  });
  if (onOpen) svg.addEventListener('click', () => at >= 0 && onOpen(at));
  svg.addEventListener('keydown', (e) => {
    const step =
        {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity, PageUp: -10, PageDown: 10}[e.key];
    if (onOpen && e.key === 'Enter' && at >= 0) onOpen(at);
    if (step === undefined || !n) return;
    e.preventDefault();
    mark(at < 0 && step > 0 ? 0 : at + step, true);
  });
  const draw = (paint) => {
    const w = Math.floor(svg.getBoundingClientRect().width) || 600;
    if (w === width) return;
    width = w;
    const grid = top.map(
        (v) => s('g', {},
            s('line', {class: 'grid', x1: 64, x2: width, y1: yOf(v, top, height), y2: yOf(v, top, height)}),
            s('text', {class: 'tick', x: 58, y: yOf(v, top, height) + 4, 'text-anchor': 'end'}, format(v))));
    svg.replaceChildren(...grid, ...paint(width, height), marks);
    if (at >= 0) mark(at, false);
  };
  return {svg, readout, draw};
}

export const yOf = (v, top, height) =>
    height - 24 - (v - top[0]) / (top[top.length - 1] - top[0]) * (height - 36);

/* Stacked columns.  names[i]: what column i is; series [{label, color, values}]; format(value);
 * ranges [{least, greatest}]: drawn as a line from one to the other, for columns that stand for several. */
// onOpen(i), opens: what Enter or a click on column i does, and where that leads in words.
export function stacked({label, names, series, format, ranges = null, height = 260, onOpen, opens}) {
  const n = names.length;
  let highest = 0;
  for (let i = 0; i < n; i++)
    highest = Math.max(highest, ranges ? ranges[i].greatest : 0,
        series.reduce((sum, x) => sum + (x.values[i] || 0), 0));
  const top = ticks(highest, 4);
  const xAt = (i, width) => 68 + (i + 0.5) * (width - 72) / Math.max(1, n);
  const describe = (i) =>
      `${names[i]}: ${
          ranges ? `${format(ranges[i].least)} to ${format(ranges[i].greatest)}, mean ` : ''}${
          format(series.reduce((sum, x) => sum + (x.values[i] || 0), 0))} — ` +
      series.filter((x) => x.values[i] > 0).map((x) => `${x.label} ${format(x.values[i])}`).join(', ');
  const f = frame({
    label,
    height,
    top,
    format,
    n,
    xAt,
    describe,
    onOpen,
    hint: onOpen ? `${HINT} Enter or a click opens ${opens}.` : HINT,
    onMark: (i, width) => {
      const w = (width - 72) / n;
      return [s('rect', {class: 'mark', x: xAt(i, width) - w / 2, width: w, y: 4, height: height - 28})];
    },
  });
  const paint = (width) => {
    const w = (width - 72) / Math.max(1, n);
    const gap = w > 6 ? Math.min(6, w * 0.22) : 0;
    const groups = series.map((x) => ({color: x.color, path: []}));
    for (let i = 0; i < n; i++) {
      let sum = 0;
      series.forEach((x, k) => {
        const v = x.values[i] || 0;
        if (!(v > 0)) return;
        const y0 = yOf(sum, top, height), y1 = yOf(sum + v, top, height);
        sum += v;
        const left = (68 + i * w + gap / 2).toFixed(2), right = (68 + (i + 1) * w - gap / 2).toFixed(2);
        groups[k].path.push(`M${left} ${y0.toFixed(2)}V${y1.toFixed(2)}H${right}V${y0.toFixed(2)}Z`);
      });
    }
    const every = Math.max(1, Math.ceil(n * 64 / Math.max(1, width - 72)));
    const labels = [];
    for (let i = 0; i < n; i += every) {
      labels.push(s('text', {class: 'tick', x: xAt(i, width), y: height - 6, 'text-anchor': 'middle'},
          short(names[i], 11)));
    }
    const lines = (ranges || []).map((r, i) => `M${xAt(i, width).toFixed(2)} ${
        yOf(r.least, top, height).toFixed(2)}V${yOf(r.greatest, top, height).toFixed(2)}`);
    return [
      ...groups.map((g) => s('path', {class: `series-${g.color}`, d: g.path.join('')})),
      ...(ranges ? [s('path', {class: 'range', d: lines.join('')})] : []), ...labels
    ];
  };
  new ResizeObserver(() => f.draw(paint)).observe(f.svg);
  return h('figure', {class: 'figure'}, f.svg, legend(series), f.readout);
}

/* Levels over time, one over the other.  x ascending; series [{label, color, values}];
 * line: {label, values} drawn above them; marks [{x, label}] */
export function levels(
    {label, x, series, line, marks = [], format, formatX, describeExtra, scale = ticks, height = 280}) {
  const n = x.length;
  let highest = 0;
  for (let i = 0; i < n; i++) {
    highest = Math.max(highest, series.reduce((sum, q) => sum + q.values[i], 0), line ? line.values[i] : 0);
  }
  const top = scale(highest, 5);
  const x0 = n ? x[0] : 0, span = n > 1 && x[n - 1] > x0 ? x[n - 1] - x0 : 1;
  const px = (v, width) => 68 + (v - x0) / span * (width - 80);
  const xAt = (i, width) => px(x[i], width);
  const describe = (i) => `${formatX(x[i])}: ` +
      [...series, ...(line ? [line] : [])].map((q) => `${q.label} ${format(q.values[i])}`).join(', ') +
      (describeExtra ? describeExtra(i) : '');
  const f = frame({
    label,
    height,
    top,
    format,
    n,
    xAt,
    describe,
    onMark: (i, width) => [s(
        'line', {class: 'cursor', x1: xAt(i, width), x2: xAt(i, width), y1: 4, y2: height - 24})],
  });
  const paint = (width) => {
    const below = new Float64Array(n);
    const areas = !n ? [] : series.map((q) => {
      const up = [], down = [];
      for (let i = 0; i < n; i++) {
        const left = xAt(i, width).toFixed(2),
              right = (i + 1 < n ? xAt(i + 1, width) : width - 12).toFixed(2);
        const y1 = yOf(below[i] + q.values[i], top, height).toFixed(2),
              y0 = yOf(below[i], top, height).toFixed(2);
        up.push(`${i ? 'L' : 'M'}${left} ${y1}L${right} ${y1}`);
        down.push(`L${right} ${y0}L${left} ${y0}`);
      }
      for (let i = 0; i < n; i++) below[i] += q.values[i];
      return s('path', {class: `area series-${q.color}`, d: up.join('') + down.reverse().join('') + 'Z'});
    });
    const extra = [];
    if (line) {
      let d = '';
      for (let i = 0; i < n; i++)
        d += `${i ? 'L' : 'M'}${xAt(i, width).toFixed(2)} ${yOf(line.values[i], top, height).toFixed(2)}`;
      extra.push(s('path', {class: 'line', d}));
    }
    for (const m of marks) {
      const at = px(m.x, width), end = at > width * 0.75;
      extra.push(s('line', {class: 'note', x1: at, x2: at, y1: 4, y2: height - 24}),
          s('text', {class: 'note', x: at + (end ? -6 : 6), y: 15, 'text-anchor': end ? 'end' : 'start'},
              m.label));
    }
    const labels = [];
    const steps = Math.max(2, Math.min(8, Math.floor(width / 140)));
    for (let i = 0; i <= steps; i++) {
      const v = x0 + span * i / steps;
      labels.push(s('text',
          {class: 'tick', x: px(v, width), y: height - 6, 'text-anchor': i === steps ? 'end' : 'middle'},
          formatX(v)));
    }
    return [...areas, ...extra, ...labels];
  };
  new ResizeObserver(() => f.draw(paint)).observe(f.svg);
  return h('figure', {class: 'figure'}, f.svg,
      legend([...series, ...(line ? [{...line, color: 'line'}] : [])]), f.readout);
}

// One bar cut into parts: [{label, value, color}], with the shares in words.
export function parts({label, items, format}) {
  const sum = items.reduce((t, x) => t + x.value, 0);
  if (!(sum > 0)) return null;
  const text = (x) => `${x.label} ${format(x.value)} (${(x.value / sum * 100).toFixed(1)} %)`;
  return h('figure', {class: 'figure'},
      h('div', {class: 'parts', role: 'img', 'aria-label': `${label}: ${items.map(text).join(', ')}`},
          items.filter((x) => x.value > 0).map((x) => h('i', {
            class: `series-${x.color}`,
            title: text(x),
            vars: {'flex-grow': String(x.value / sum)}
          }))),
      h('ul', {class: 'legend'},
          items.filter((x) => x.value > 0)
              .map((x) => h('li', {}, h('i', {class: `swatch series-${x.color}`}), text(x)))));
}
