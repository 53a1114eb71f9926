// SPDX-License-Identifier: Apache-2.0
// Tables of two sides beside each other: what ops and kernels of one took, and of the other.

import {h} from './dom.js';
import * as format from './format.js';
import {DataTable} from './table.js';

const STATES = {
  both: '',
  new: 'new in B',
  vanished: 'only in A'
};

export const signed = (show) => (v) => (v > 0 ? '+' : v < 0 ? '−' : '') + show(Math.abs(v));
// Above 300%: how many times as much.
export const times = (p) =>
    (p === null ? '' : p > 300 ? `×${format.number(1 + p / 100)}` : signed((v) => `${v.toFixed(v < 10 ? 2 : 1)} %`)(p));

// Columns of what both sides have of each row of LIST, in the unit that SHOW writes.
export function sides(list, [a, b, difference], show, [ofA, ofB] = ['A', 'B']) {
  const unit = a.slice(a.lastIndexOf('_') + 1);
  const column = (id, label, key, f) => ({
    id,
    label,
    type: 'number',
    values: Float64Array.from(list, (r) => r[key]),
    format: f,
    unit,
    width: 120
  });
  return [
    column('a', ofA, a, show), column('b', ofB, b, show),
    column('difference', 'Difference', difference, signed(show))
  ];
}

export const PS = ['a_ps', 'b_ps', 'difference_ps'];
export const text = (list, id, label, key, width) =>
    ({id, label, type: 'string', values: list.map((r) => String(r[key])), width});
export const state = (list) =>
    ({id: 'state', label: 'State', type: 'string', values: list.map((r) => STATES[r.state] || ''), width: 90});
export const percent = (list, label = 'Of A') => ({
  id: 'percent',
  label,
  type: 'number',
  values: Float64Array.from(list, (r) => (r.difference_percent === null ? NaN : r.difference_percent)),
  format: (v) => (Number.isFinite(v) ? times(v) : ''),
  unit: '%',
  width: 90
});
export const counts = (list) => [['a_count', 'Count A'], ['b_count', 'Count B']].map(([key, label]) => ({
  id: key,
  label,
  type: 'number',
  values: Float64Array.from(list, (r) => r[key]),
  format: format.number,
  width: 110
}));

// A table with its heading; FILE begins the name of its export.
export function section(file, title, list, columns, total, facets, [ofA, ofB] = ['A', 'B']) {
  if (!list.length) return '';
  const data = new DataTable({
    columns,
    length: list.length,
    caption: title,
    csv: `${file}_${title.toLowerCase().replace(/[^a-z0-9]+/g, '_')}.csv`,
    facetColumns: facets || []
  });
  return h('section', {class: 'card flush', 'aria-label': title}, h('h2', {class: 'pad'}, title),
      total ? h('p', {class: 'muted pad total'},
          `All rows: ${format.ps(total.a_ps)} in ${ofA}, ${format.ps(total.b_ps)} in ${ofB}, ${signed(format.ps)(total.difference_ps)}`) :
              '',
      data.element);
}

// Of what A calls otherwise: both names.
const named = (name, o) => (!o.a_name ? name : `${name}, was ${o.a_name}`);

export function opsSection(file, title, ops, total) {
  const list = ops.map((o) => ({...o, op: named(o.op, o), source: o.source_file ? `${o.source_file}:${o.source_line}` : ''}));
  return section(file, title, list,
      [text(list, 'op', 'Op', 'op', 320), text(list, 'category', 'Category', 'category', 150), state(list),
       ...sides(list, PS, format.ps), ...counts(list), text(list, 'shape', 'Shape', 'shape', 160),
       text(list, 'source', 'Source', 'source', 220)],
      total, ['state', 'category']);
}

export function kernelsSection(file, title, list, total) {
  const kernels = list.map((k) => ({...k, kernel: named(k.kernel, k)}));
  return section(file, title, kernels,
      [text(kernels, 'kernel', 'Kernel', 'kernel', 320), text(kernels, 'op', 'Op', 'op', 220), state(kernels),
       ...sides(kernels, PS, format.ps), ...counts(kernels)],
      total, ['state']);
}
