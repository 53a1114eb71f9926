// SPDX-License-Identifier: Apache-2.0
// History: metrics over the sessions of a label, a schedule or a directory; where their level changes, and the
// causes and ops behind that.

import {h} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import * as router from '../lib/router.js';
import {empty, notes, refusal} from '../lib/notes.js';
import {series} from '../lib/series.js';
import {PS, kernelsSection, opsSection, percent, section as rows, sides, text, times} from '../lib/sides.js';
import {DataTable} from '../lib/table.js';

const MOST = 16;  // sessions of a side of the link to Compare
const LAST = ['20', '50', '100', '200', '500', '1000'];
// What may be asked for by a name of its own (docs/history.md); others are made of the name of an op.
const METRICS = [
  'step_time', 'step_deviation', 'longest_step', 'steps', 'busy_time', 'compile_time', 'model_rate',
  'bf16_rate', 'utilization', 'peak_memory', 'compute', 'overlapped_collectives', 'exposed_collectives',
  'host_copies', 'device_copies', 'callback', 'input', 'checkpoint', 'compile', 'launch', 'queued', 'host',
  'unknown'
];
const PRESET = METRICS[0];

const SHOW = {
  ps: format.ps,
  bytes: format.bytes,
  count: format.number,
  percent: (v) => (Number.isFinite(v) ? `${v.toFixed(1)} %` : '–'),
  flops_per_second: (v) => `${format.number(v / 1e9)} GFLOP/s`,
};
const shower = (unit) => SHOW[unit] || format.number;
const title = (metric) => metric.replace(/^(op|kernel|memory):/, '$1 ').replaceAll('_', ' ');

// ---- what is asked for ----

// All directories that sessions lie in, also those above others.
function directories(list) {
  const all = new Set();
  for (const {name} of list)
    for (let at = name.indexOf('/'); at >= 0; at = name.indexOf('/', at + 1)) all.add(name.slice(0, at));
  return [...all].sort((x, y) => x.localeCompare(y, 'en', {numeric: true}));
}

function choice(ctx, key, label, any, values) {
  const now = ctx.params.get(key) || '';
  const list = now && !values.includes(now) ? [now, ...values] : values;
  const select = h('select', {id: `history-${key}`, onchange: () => ctx.update({[key]: select.value}, true)},
      any === null ? '' : h('option', {value: ''}, any), list.map((v) => h('option', {value: v}, v)));
  select.value = now || (any === null ? '100' : '');
  return h('label', {}, label, ' ', select);
}

// A field whose value counts once the reader leaves it or presses Enter.
function field(ctx, key, label, props, change) {
  const input = h('input', {id: `history-${key}`, autocomplete: 'off', spellcheck: 'false', ...props});
  const done = () => input.value.trim() !== (props.value || '') && change(input.value.trim());
  input.addEventListener('change', done);
  return h('label', {}, label, ' ', input);
}

function controls(ctx, list, metrics) {
  const labels = [...new Set(list.flatMap((s) => s.labels || []))].sort((x, y) => x.localeCompare(y, 'en', {numeric: true}));
  const set = (changed) => ctx.update({metric: changed}, true);
  return h('form', {class: 'card asked', 'aria-label': 'What is shown', onsubmit: (e) => e.preventDefault()},
      h('div', {class: 'bar'}, choice(ctx, 'label', 'Label', 'Any', labels),
          choice(ctx, 'directory', 'Directory', 'Any', directories(list)),
          field(ctx, 'schedule', 'Schedule', {
            type: 'text', inputmode: 'numeric', size: '6', placeholder: 'number', value: ctx.params.get('schedule') || ''
          }, (v) => ctx.update({schedule: v}, true)),
          choice(ctx, 'last', 'Newest', null, LAST),
          field(ctx, 'metric', 'Add a metric', {
            type: 'text', list: 'history-metrics', placeholder: 'step_time, op:NAME, …'
          }, (v) => v && set([...new Set([...metrics, v])]))),
      h('datalist', {id: 'history-metrics'}, METRICS.map((m) => h('option', {value: m}))),
      h('ul', {class: 'chosen', 'aria-label': 'Metrics'},
          metrics.map((m, i) => h('li', {}, title(m), ' ', h('button', {
            type: 'button',
            class: 'quiet',
            'aria-label': `Remove ${title(m)}`,
            disabled: metrics.length === 1,
            onclick: () => set(metrics.filter((_, k) => k !== i))
          }, '×')))));
}

// ---- one metric ----

// Positions of the points at which a level begins, and those of the levels between.
function stretches(metric) {
  const begins = metric.changes.map((c) => metric.points.findIndex((p) => p.session === c.session));
  const ends = [0, ...begins, metric.points.length];
  return begins.length ? ends.slice(1).map((to, i) => {
    const part = metric.points.slice(ends[i], to);
    return {from: ends[i], to: to - 1, mean: part.reduce((sum, p) => sum + p.value, 0) / part.length};
  }) : [];
}

const towards = (percent) => (percent === null ? '' : times(percent));

function chart(metric, levels) {
  const show = shower(metric.unit), {points} = metric;
  return series({
    label: `${title(metric.metric)} of ${points.length} sessions`,
    values: Float64Array.from(points, (p) => p.value),
    names: points.map((p) => format.date(p.captured_unix_ms).slice(5)),
    texts: points.map((p, i) => [
      `${p.session}, ${format.date(p.captured_unix_ms)}: ${show(p.value)}`,
      p.change_percent === null ? '' : `${towards(p.change_percent)} against the one before`,
      p.median_change_percent === null ? '' : `${towards(p.median_change_percent)} against the median before`,
      metric.changes.some((c) => c.session === points[i].session) ? 'a new level begins' : ''
    ].filter(Boolean).join(', ')),
    levels,
    changes: metric.changes.map((c, i) => ({at: levels[i + 1].from, label: towards(c.difference_percent), worse: c.regression})),
    format: show,
    onOpen: (i) => {
      location.hash = router.link(points[i].session, 'overview');
    },
  });
}

const causes = (file, title, list) => {
  const named = list.map((t) => ({...t, cause: t.cause.replaceAll('_', ' ')}));
  return rows(file, title, named,
      [text(named, 'cause', 'Cause', 'cause', 220), ...sides(named, PS, format.ps), percent(named)]);
};

// Sessions that have no value, and why.
const without = (list) => (list.length ?
    h('details', {class: 'without'}, h('summary', {}, `${list.length} ${list.length === 1 ? 'session has' : 'sessions have'} no value`),
        h('ul', {}, list.map((s) => h('li', {}, `${s.session}: ${s.reason}`)))) :
    '');

function change(metric, c, i, levels) {
  const show = shower(metric.unit), names = metric.points.map((p) => p.session);
  const before = names.slice(levels[i].from, levels[i].to + 1).slice(-MOST),
        after = names.slice(levels[i + 1].from, levels[i + 1].to + 1).slice(0, MOST);
  const what = c.regression ? 'Regression' : metric.better ? 'Improvement' : 'Change';
  const file = `history_${metric.metric.replace(/[^A-Za-z0-9]+/g, '_')}`;
  const of = `${title(metric.metric)} since ${c.session}`;
  return h('section', {class: 'change', 'aria-label': `${what} of ${of}`}, h('h3', {}, `${what} since `,
      h('a', {href: router.link(c.session, 'overview')}, c.session)),
      h('p', {class: c.regression ? 'worse' : ''}, `${show(c.before)} → ${show(c.after)}`,
          c.difference_percent === null ? '' : ` (${towards(c.difference_percent)})`,
          `: means of ${c.sessions_before} sessions before and ${c.sessions_after} since. `,
          h('a', {href: router.link(null, 'compare', {a: before, b: after})}, 'Compare them')),
      c.times.length ?
          h('p', {class: 'muted'}, 'The causes of the change, per step. A: the sessions before, B: those since.') :
          '',
      causes(file, `Causes of ${of}`, c.times), opsSection(file, `Ops behind ${of}`, c.ops), kernelsSection(file, `Kernels behind ${of}`, c.kernels));
}

function values(metric) {
  const show = shower(metric.unit), {points} = metric;
  const number = (id, label, key, f, unit) => ({
    id,
    label,
    type: 'number',
    values: Float64Array.from(points, (p) => (p[key] === null ? NaN : p[key])),
    format: f,
    unit,
    width: 140
  });
  const percent = (v) => (Number.isFinite(v) ? times(v) : '');
  const table = new DataTable({
    columns: [
      {id: 'session', label: 'Session', type: 'string', values: points.map((p) => p.session), width: 260},
      number('captured', 'Captured', 'captured_unix_ms', format.date, 'unix ms'),
      number('value', 'Value', 'value', show, metric.unit),
      number('change', 'Against the one before', 'change_percent', percent, '%'),
      number('median', 'Against the median', 'median_change_percent', percent, '%'),
    ],
    length: points.length,
    caption: `Values of ${title(metric.metric)}`,
    csv: `history_${metric.metric.replace(/[^A-Za-z0-9]+/g, '_')}.csv`,
    onOpen: (row) => {
      location.hash = router.link(points[row].session, 'overview');
    },
  });
  const all = h('details', {class: 'values'}, h('summary', {}, 'All values'), table.element);
  return all;
}

function section(metric, least) {
  const show = shower(metric.unit), {points} = metric;
  const name = title(metric.metric);
  if (!points.length)
    return h('section', {class: 'card', 'aria-label': name}, h('h2', {}, name),
        h('p', {class: 'muted'}, 'No session has it.'), without(metric.without));
  const levels = stretches(metric);
  const worse = metric.changes.filter((c) => c.regression).length;
  const verdict = points.length < least ?
      `Fewer than ${least} sessions have it, too few to detect a change of level.` :
      !metric.changes.length ? 'Its level did not change.' :
      worse ? `${worse} ${worse === 1 ? 'regression' : 'regressions'}.` : 'No regression.';
  return h('section', {class: 'card history', 'aria-label': name}, h('h2', {}, name),
      h('p', {}, `Newest: ${show(points[points.length - 1].value)}. ${verdict}`), chart(metric, levels),
      metric.changes.map((c, i) => change(metric, c, i, levels)), without(metric.without), values(metric));
}

export default {
  title: 'History',
  async render(ctx) {
    const list = ((await api.sessions(ctx.signal)).data.sessions || []).filter((s) => !s.report);
    const asked = ctx.params.getAll('metric');
    const metrics = asked.length ? asked : [PRESET];
    ctx.root.append(h('h1', {}, 'History'), controls(ctx, list, metrics));
    const query = [...['label', 'directory', 'schedule', 'last'].filter((k) => ctx.params.get(k)).map((k) => [k, ctx.params.get(k)]),
                   ...metrics.map((m) => ['metric', m])];
    // Step times of unrelated programs have no history.
    if (!['label', 'directory', 'schedule', 'last', 'metric'].some((k) => ctx.params.get(k))) {
      ctx.root.append(empty('Choose a label, a schedule or a directory',
          'A history needs sessions of one program. Label them with “xplanectl label SESSION LABEL”, or capture them by a schedule.'),
          h('p', {}, h('a', {href: router.link(null, 'history', {last: '100'})}, 'Show all sessions')));
      return;
    }
    let d;
    try {
      d = (await api.get(api.address('history', query), ctx.signal)).data;
    } catch (e) {
      if (e.name === 'AbortError' || !(e instanceof api.ApiError)) throw e;
      ctx.root.append(refusal(e, ctx.meant(e)));
      return;
    }
    const lost = h('div', {class: 'notes'});
    notes(lost, d.sessions.filter((s) => s.error).map((s) => `${s.session} is left out: ${s.error}`));
    ctx.root.append(lost, ...d.metrics.map((m) => section(m, d.least_sessions)));
  },
};
