// SPDX-License-Identifier: Apache-2.0
// Compare: two runs, or groups of runs.

import {h} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import * as router from '../lib/router.js';
import {empty, refusal} from '../lib/notes.js';
import {
  PS,
  kernelsSection,
  opsSection,
  percent,
  section,
  sides,
  signed,
  state,
  text,
  times
} from '../lib/sides.js';

const SIDES = ['a', 'b'];
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

export function sentence(d, [ofA, ofB] = ['A', 'B']) {
  const step = d.step_time, ends = step.interval_ps;
  if (!d.a.steps || !d.b.steps)
    return `${d.a.steps ? ofB : d.b.steps ? ofA : 'Neither side'} has ${
        d.a.steps || d.b.steps ? 'no steps' : 'steps'}, so that step times cannot be compared.`;
  const how = step.difference_ps > 0 ? 'longer' : 'shorter';
  const much = `Steps of ${ofB} are ${format.ps(Math.abs(step.difference_ps))} ${how} (${times(step.difference_percent)})`;
  if (!ends)
    return `${much}. Fewer than ${
        step.least_steps} steps on a side: too few to exclude chance.`;
  const interval = `The difference is between ${signed(format.ps)(ends[0])} and ${
      signed(format.ps)(ends[1])}, with 95 % confidence.`;
  return ends[0] <= 0 && ends[1] >= 0 ?
      `The difference of step times may be due to chance: it is ${signed(format.ps)(step.difference_ps)}. ${interval}` :
      `${much}. ${interval}`;
}

// Where the noise comes from, and which difference would have been seen.
export function noise(d) {
  const {noise: from, detectable_ps: least, detectable_percent: part} = d.step_time;
  if (from === 'steps')
    return 'This interval only has the noise within one run a side. Runs of one program can differ by more: ' +
        'add runs to each side, or label earlier sessions of the program.';
  if (!from) return '';
  const of = from === 'history' ? `${d.history.sessions} sessions labelled ${d.history.label}` : 'the runs';
  return `Noise between ${of}: a difference of ${format.ps(least)}${part === null ? '' : ` (${part.toFixed(1)} %)`} would have been seen.`;
}

function verdict(d) {
  const tile = (label, value, note) =>
      h('div', {class: 'tile'}, h('dt', {}, label), h('dd', {}, value), h('dd', {class: 'muted small'}, note));
  const side = (name) => {
    const s = d[name], of = (n, what) => `${format.count(n)} ${what}${n === 1 ? '' : 's'}`;
    const known = [
      s.steps ? `${of(s.steps, 'step')}, median ${format.ps(s.median_step_ps)}` : '',
      s.steps > 1 ? `deviation ${format.ps(s.std_step_ps)}` : '',
      of(s.devices, 'device'),
    ];
    return tile(`Step of ${name.toUpperCase()}${s.devices > 1 ? ', slowest device' : ''}`,
        s.steps ? format.ps(s.mean_step_ps) : 'no steps', known.filter((t) => t).join(', '));
  };
  return h('section', {class: 'card', 'aria-label': 'Verdict'}, h('p', {class: 'verdict'}, sentence(d)),
      h('p', {class: 'muted noise'}, noise(d)),
      h('dl', {class: 'tiles'}, SIDES.map(side),
          tile('Difference', d.step_time.difference_ps === null ? 'not known' : signed(format.ps)(d.step_time.difference_ps),
              times(d.step_time.difference_percent))));
}

// ---- tables ----

// The 95% interval of each difference; without one the noise is not known.
const interval = (list) => text(list.map((c) => ({
  interval: c.interval_ps ? c.interval_ps.map(signed(format.ps)).join(' to ') : ''
})), 'interval', '95 % interval', 'interval', 190);

// Time of a step by its causes.
export function causesOfStep(d, names = ['A', 'B'], of = 'Of A', called = names) {
  const causes = d.times.filter((t) => t.a_ps > 0 || t.b_ps > 0);
  return section('compare', 'Time of a step', causes,
      [text(causes.map((t) => ({...t, cause: t.cause.replaceAll('_', ' ')})), 'cause', 'Cause', 'cause', 220),
       ...sides(causes, PS, format.ps, names), percent(causes, of), interval(causes)],
      d.times_total, [], called);
}

function tables(d) {
  return [
    causesOfStep(d),
    opsSection('compare', 'Ops of a step', d.ops, d.ops_total),
    kernelsSection('compare', 'Kernels of a step', d.kernels, d.kernels_total),
    section('compare', 'Peak memory', d.memory,
        [text(d.memory, 'allocator', 'Allocator', 'allocator', 220), state(d.memory),
         ...sides(d.memory, ['a_peak_bytes', 'b_peak_bytes', 'difference_bytes'], format.bytes), percent(d.memory)]),
  ];
}

export default {
  title: 'Compare',
  async render(ctx) {
    const list = (await api.sessions(ctx.signal)).data.sessions || [];
    const names = list.map((s) => s.name).sort((x, y) => x.localeCompare(y, 'en', {numeric: true}));
    ctx.root.append(h('h1', {}, 'Compare'),
        h('div', {class: 'sides'}, SIDES.map((side) => picker(ctx, side, names))));
    if (!SIDES.every((side) => ctx.params.getAll(side).length)) {
      ctx.root.append(empty('Choose a run for each side',
          'Choose three to five runs a side: their noise tells whether a difference is one.'));
      return;
    }
    const query = SIDES.flatMap((side) => ctx.params.getAll(side).map((name) => [side, name]));
    try {
      const d = (await api.get(api.address('compare', query), ctx.signal)).data;
      ctx.root.append(verdict(d), ...tables(d));
    } catch (e) {
      if (e.name === 'AbortError' || !(e instanceof api.ApiError)) throw e;
      ctx.root.append(refusal(e, ctx.meant(e)));
    }
  },
};
