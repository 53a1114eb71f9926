// SPDX-License-Identifier: Apache-2.0
// Compare: two runs, or groups of runs, beside each other.

import {h} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import * as router from '../lib/router.js';
import {DataTable} from '../lib/table.js';
import {empty} from '../lib/notes.js';

const SIDES = ['a', 'b'];
const STATES = {
  both: '',
  new: 'new in B',
  vanished: 'only in A'
};

const signed = (show) => (v) => (v > 0 ? '+' : v < 0 ? '−' : '') + show(Math.abs(v));
const times = (p) => (p === null ? '' : signed((v) => `${v.toFixed(v < 10 ? 2 : 1)} %`)(p));

// ---- which runs ----

// The runs of one side: each can be removed, and another one added.
function picker(ctx, side, names) {
  const chosen = ctx.params.getAll(side);
  const label = side.toUpperCase();
  const choose = (list) => ctx.update({[side]: list}, true);
  const select = h('select', {
    id: `add-${side}`,
    'aria-label': chosen.length ? `Add a run to ${label}` : `Run ${label}`,
    onchange: () => choose([...chosen, select.value]),
  },
      h('option', {value: ''}, chosen.length ? 'Add a run …' : 'Choose a run …'),
      names.map((n) => h('option', {value: n}, n)));
  return h('section', {class: 'card side', 'aria-label': `Runs of ${label}`}, h('h2', {}, label),
      chosen.length ?
          h('ul', {class: 'chosen'},
              chosen.map(
                  (name, i) => h('li', {}, h('a', {href: router.link(name, 'overview')}, name), ' ', h('button', {
                    type: 'button',
                    class: 'quiet',
                    'aria-label': `Remove ${name} from ${label}`,
                    onclick: () => choose(chosen.filter((_, k) => k !== i))
                  },
                                                                                                         '×')))) :
          '',
      select);
}

// ---- the verdict ----

function sentence(d) {
  const step = d.step_time, ends = step.interval_ps;
  if (!d.a.steps || !d.b.steps)
    return `${d.a.steps ? 'B' : d.b.steps ? 'A' : 'Neither side'} has ${
        d.a.steps || d.b.steps ? 'no steps' : 'steps'}, so that step times cannot be compared.`;
  const how = step.difference_ps > 0 ? 'longer' : 'shorter';
  const much = `Steps of B are ${format.ps(Math.abs(step.difference_ps))} ${how} (${times(step.difference_percent)})`;
  if (!ends)
    return `${much}. Fewer than ${
        step.least_steps} steps on a side: whether that is chance cannot be told.`;
  const interval = `The difference lies between ${signed(format.ps)(ends[0])} and ${
      signed(format.ps)(ends[1])}, with 95 % confidence.`;
  return ends[0] <= 0 && ends[1] >= 0 ?
      `No difference of step times can be told from chance: it is ${signed(format.ps)(step.difference_ps)}. ${interval}` :
      `${much}. ${interval}`;
}

function verdict(d) {
  const tile = (label, value, note) =>
      h('div', {class: 'tile'}, h('dt', {}, label), h('dd', {}, value), h('dd', {class: 'muted small'}, note));
  const side = (name) => {
    const s = d[name], of = (n, what) => `${format.count(n)} ${what}${n === 1 ? '' : 's'}`;
    return tile(`Step of ${name.toUpperCase()}`, s.steps ? format.ps(s.mean_step_ps) : 'no steps',
        `${of(s.steps, 'step')}, median ${format.ps(s.median_step_ps)}, deviation ${format.ps(s.std_step_ps)}, ${of(s.devices, 'device')}`);
  };
  return h('section', {class: 'card', 'aria-label': 'Verdict'}, h('p', {class: 'verdict'}, sentence(d)),
      h('dl', {class: 'tiles'}, SIDES.map(side),
          tile('Difference', signed(format.ps)(d.step_time.difference_ps), times(d.step_time.difference_percent))));
}

// ---- tables ----

// Columns of what both sides have of each row of LIST, in the unit that SHOW writes.
function sides(list, [a, b, difference], show) {
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
    column('a', 'A', a, show), column('b', 'B', b, show),
    column('difference', 'Difference', difference, signed(show))
  ];
}

const PS = ['a_ps', 'b_ps', 'difference_ps'];
const text = (list, id, label, key, width) =>
    ({id, label, type: 'string', values: list.map((r) => String(r[key])), width});
const state = (list) =>
    ({id: 'state', label: 'State', type: 'string', values: list.map((r) => STATES[r.state] || ''), width: 90});
const percent = (list) => ({
  id: 'percent',
  label: 'Of A',
  type: 'number',
  values: Float64Array.from(list, (r) => (r.difference_percent === null ? NaN : r.difference_percent)),
  format: (v) => (Number.isFinite(v) ? times(v) : ''),
  unit: '%',
  width: 90
});
const counts = (list) => [['a_count', 'Count A'], ['b_count', 'Count B']].map(([key, label]) => ({
  id: key,
  label,
  type: 'number',
  values: Float64Array.from(list, (r) => r[key]),
  format: format.number,
  width: 110
}));

function section(title, list, columns, total, facets) {
  if (!list.length) return '';
  const data = new DataTable({
    columns,
    length: list.length,
    caption: title,
    csv: `compare_${title.toLowerCase().replaceAll(' ', '_')}.csv`,
    facetColumns: facets || []
  });
  return h('section', {class: 'card flush', 'aria-label': title}, h('h2', {class: 'pad'}, title),
      total ? h('p', {class: 'muted pad total'},
          `All rows: ${format.ps(total.a_ps)} in A, ${format.ps(total.b_ps)} in B, ${signed(format.ps)(total.difference_ps)}`) :
              '',
      data.element);
}

function tables(d) {
  const causes = d.times.filter((t) => t.a_ps > 0 || t.b_ps > 0);
  const shape = d.ops.map((o) => ({...o, source: o.source_file ? `${o.source_file}:${o.source_line}` : ''}));
  return [
    section('Time of a step',
        causes,
        [text(causes.map((t) => ({...t, cause: t.cause.replaceAll('_', ' ')})), 'cause', 'Cause', 'cause', 220),
         ...sides(causes, PS, format.ps), percent(causes)],
        d.times_total),
    section('Ops of a step', shape,
        [text(shape, 'op', 'Op', 'op', 320), text(shape, 'category', 'Category', 'category', 150), state(shape),
         ...sides(shape, PS, format.ps), ...counts(shape), text(shape, 'shape', 'Shape', 'shape', 160),
         text(shape, 'source', 'Source', 'source', 220)],
        d.ops_total, ['state', 'category']),
    section('Kernels of a step', d.kernels,
        [text(d.kernels, 'kernel', 'Kernel', 'kernel', 320), text(d.kernels, 'op', 'Op', 'op', 220),
         state(d.kernels), ...sides(d.kernels, PS, format.ps), ...counts(d.kernels)],
        d.kernels_total, ['state']),
    section('Peak memory', d.memory,
        [text(d.memory, 'allocator', 'Allocator', 'allocator', 220), state(d.memory),
         ...sides(d.memory, ['a_peak_bytes', 'b_peak_bytes', 'difference_bytes'], format.bytes), percent(d.memory)]),
  ];
}

export default {
  title: 'Compare',
  async render(ctx) {
    const list = (await api.sessions(ctx.signal)).data.sessions || [];
    const names = list.filter((s) => s.kind !== 'iree').map((s) => s.name).sort((x, y) => x.localeCompare(y, 'en', {numeric: true}));
    ctx.root.append(h('h1', {}, 'Compare'),
        h('div', {class: 'sides'}, SIDES.map((side) => picker(ctx, side, names))));
    if (!SIDES.every((side) => ctx.params.getAll(side).length)) {
      ctx.root.append(empty('Choose a run for each side',
          'Several runs of a side count as one: all their steps, and the sums of all.'));
      return;
    }
    const query = SIDES.flatMap((side) => ctx.params.getAll(side).map((name) => [side, name]));
    try {
      const d = (await api.get(api.address('compare', query), ctx.signal)).data;
      ctx.root.append(verdict(d), ...tables(d));
    } catch (e) {
      if (e.name === 'AbortError' || !(e instanceof api.ApiError)) throw e;
      ctx.root.append(h('section', {class: 'problem card', role: 'alert'}, h('p', {class: 'message'}, e.message),
          h('p', {class: 'muted'}, api.advice(e))));
    }
  },
};
