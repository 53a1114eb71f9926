// SPDX-License-Identifier: Apache-2.0
// Overview: how long steps take, what they are spent on, and what to do next.

import {h, plain} from '../lib/dom.js';
import * as format from '../lib/format.js';
import * as router from '../lib/router.js';
import {stacked} from '../lib/chart.js';
import {columns, column} from '../lib/gviz.js';
import {empty, diagnostics} from '../lib/notes.js';
import {about, answerOf, compared} from '../lib/base.js';
import {signed} from '../lib/sides.js';
import {causesOfStep, noise, sentence} from './compare.js';
import {aboutInput, computing, dropDenial, dropForeign, PARTS, remark, slowestOf, traceLink, verdict, xprofsAdvice} from './verdict.js';

const PATIENCE_MS = 100;  // for findings that are known: later ones push what is below them down

const MOST_STEPS = 400;  // columns in the chart; with more, one stands for several: their mean, least and greatest

function extremes(values, from, n) {
  let least = Infinity, greatest = 0;
  for (let i = from; i < Math.min(values.length, from + n); i++) {
    if (values[i] < least) least = values[i];
    if (values[i] > greatest) greatest = values[i];
  }
  return {least, greatest};
}

// Steps as a chart.  NUMBER and TIMES of each step; PARTS: [{label, color, values: of each step}]; onOpen(names): of the
// steps that a column stands for.
function chart(number, times, parts, onOpen) {
  const n = number.length, group = Math.ceil(n / MOST_STEPS), m = Math.ceil(n / group);
  const names = Array.from({length: m},
      (_, i) => (group === 1 ? String(number[i]) :
                               `${number[i * group]} to ${number[Math.min(n, (i + 1) * group) - 1]}`));
  const series = parts.map(({label, color, values}) => ({
                        label,
                        color,
                        values: Float64Array.from({length: m},
                            (_, i) => {
                              const part = values.slice(i * group, Math.min(n, (i + 1) * group));
                              return part.reduce((a, b) => a + (b || 0), 0) / part.length;
                            }),
                      }))
                     .filter((x) => x.values.some((v) => v > 0));
  const ranges = group > 1 && times ? Array.from({length: m}, (_, i) => extremes(times, i * group, group)) : null;
  return stacked({
    label: `Time of ${n} step${n === 1 ? '' : 's'}${
        group > 1 ? `, ${group} in a column: their mean, and a line from the shortest to the longest` : ''}`,
    names,
    series,
    ranges,
    format: format.ms,
    onOpen: onOpen && ((i) => onOpen(number.slice(i * group, (i + 1) * group))),
    opens: 'the step in the trace'
  });
}

// XProf's step table as a chart.
export function steps(table, onOpen) {
  const wanted = String(table.props.step_time_graph_column_ids || '').split(',').map((x) => x.trim());
  const cols = table.columns.filter(
      (c) => c.type === 'number' && c.id !== 'stepTimeMs' && (wanted.includes(c.id) || /TimeMs$/.test(c.id)));
  return chart(column(table, 'stepnum').values, column(table, 'stepTimeMs')?.values,
      cols.map((c, k) => ({label: c.label, color: k % 9, values: c.values})), onOpen);
}

// The steps of a host by their causes, as the findings have them.
function causes(host, onOpen) {
  const t = host.steps, ms = (key) => t.step.map((_, i) => (t[key]?.[i] || 0) / 1e9);
  const sum = (keys) => keys.map(ms).reduce((a, b) => a.map((v, i) => v + b[i]));
  return chart(t.name, ms('wall_ps'), PARTS.map(([label, keys], color) => ({label, color, values: sum(keys)})), onOpen);
}

function stepCard(title, ...content) {
  return h('section', {class: 'card', 'aria-labelledby': 'step-time'}, h('h2', {id: 'step-time'}, title), content);
}

// What is shown until the causes are known, and where they are not.
function stepTimes(table, environment, onOpen) {
  return stepCard(Number(environment.props.host_count) > 1 ? 'Step time, first host' : 'Step time',
      h('p', {class: 'muted'}, 'XProf’s categories: compute is what framework ops take, and differs from the share above, which is measured on the devices.'),
      steps(table, onOpen));
}

function stepCauses(host, nHosts, onOpen) {
  return stepCard(nHosts > 1 ? `Step time of the slowest host, ${host.host}` : 'Step time', causes(host, onOpen));
}

// Opens the longest of the steps with these NAMES, which end in numbers, in the trace, on the host where it takes longest.
function openStep(ctx, found, names) {
  const numbers = names.map((name) => Number(/(\d+)$/.exec(name)?.[1]));
  let best = null;
  for (const {host, steps: t} of found?.hostSteps || [])
    t.step.forEach((number, i) => {
      if (numbers.includes(number) && !(best?.ps >= t.wall_ps[i])) best = {host, begin: t.begin_ps[i], ps: t.wall_ps[i]};
    });
  if (best) location.hash = traceLink(ctx, best.host, best.begin, best.ps);
}

function tile(label, value, note, more) {
  return h('div', {class: 'tile'}, h('dt', {}, label), h('dd', {}, value),
      note ? h('dd', {class: 'muted small'}, note) : '', more || '');
}

// The rate of all devices against their peak: as the verdict has it, else as XProf's page has it.
function rate(analysis, found) {
  const of = found?.verdict, known = (id) => ![undefined, '', 'unknown', '0.0%'].includes(analysis[id]);
  if (of?.peak_percent) return [format.fraction(of.peak_percent / 100), `${format.flops(of.flops_per_second)} for each device`];
  const peak = [['mxu_utilization_percent', 'matrix unit'], ['flop_rate_utilization_relative_to_roofline', 'floating-point operations'],
    ['hbm_utilization_percent', 'bandwidth of the memory']].find(([id]) => known(id));
  return peak ? [analysis[peak[0]], peak[1]] : ['–', 'costs of ops or the peak are not known'];
}

// The base's figure W, and by how much V differs from it; '': not known.
function differs(v, w, show, by = show) {
  return Number.isFinite(v) && Number.isFinite(w) ? h('dd', {class: 'muted small differs'}, `base ${show(w)}, ${signed(by)(v - w)}`) : '';
}
const points = (x) => `${(x * 100).toFixed(1)} points`;

// Of a CPU only the threads are known that ran its ops.
function cores(count) {
  const threads = /recorded threads: (\d+)/.exec(count)?.[1];
  return threads ? `${threads} recorded thread${threads === '1' ? '' : 's'}` : `${count} core${count === '1' ? '' : 's'}`;
}

// FOUND: the answer of findings; null: not known.  BASE: {found, both} of the base session, or null.
function tiles(analysis, step, environment, found, base) {
  const a = analysis.props, s = step.props, e = environment.props;
  const out = [];
  if (step.length) {
    const times = column(step, 'stepTimeMs');
    const sums = times ? times.values : null;
    const count = `${format.count(step.length)} step${step.length === 1 ? '' : 's'}`;
    // Of several hosts the table has the steps of the first alone; the average is that of the core
    // whose steps take longest in total.
    const several = Number(e.host_count) > 1;
    const all = sums && !several ? extremes(sums, 0, sums.length) : null;
    const average = several || !sums || s.steptime_series ? Number(s.steptime_ms_average) : sums.reduce((x, y) => x + y, 0) / sums.length;
    out.push(tile(several ? 'Average step time, slowest host' : 'Average step time', format.ms(average),
        s.steptime_series ? s.steptime_series :
        several ? `${format.ms(Number(s.steptime_ms_minimum))} to ${format.ms(Number(s.steptime_ms_maximum))}, ${count}` :
            all ? `${format.ms(all.least)} to ${format.ms(all.greatest)}, ${count}` : count,
        differs(base?.both?.b.mean_step_ps ?? NaN, base?.both?.a.mean_step_ps ?? NaN, format.ps)));
  }
  out.push(tile('Computing', format.fraction(computing(found)), 'share of the time of all devices',
      differs(computing(found), computing(base?.found), format.fraction, points)));
  out.push(tile('Rate against the peak', ...rate(a, found),
      differs(found?.verdict.peak_percent / 100, base?.found?.verdict.peak_percent / 100, format.fraction, points)));
  if (e.device_type)
    out.push(tile('Device', e.device_type,
        `${cores(e.device_core_count)}, ${e.host_count} host${
            e.host_count === '1' ? '' : 's'}${
            parseFloat(a.device_duty_cycle_percent) > 0 ? `; busy ${a.device_duty_cycle_percent}: with ops on the device, also copies and waits` : ''}`));
  return h('dl', {class: 'tiles'}, out);
}

// Where to look for what ran without ops that are known.
function ran(ctx) {
  const link = (page, text) => h('a', {href: router.link(ctx.session.name, page, {host: ctx.hosts})}, text);
  return [link('kernels', 'Kernels'), ' and ', link('trace', 'Trace'), ' show what ran.'];
}

function ops(ctx, analysis) {
  const time = column(analysis, 'selfTimePercent'), name = column(analysis, 'operation'),
        category = column(analysis, 'category'), rate = column(analysis, 'flopRate');
  const open = (text) => router.link(ctx.session.name, 'ops', {host: ctx.hosts, q: text});
  const head = (text, numeric) => h('th', {scope: 'col', class: numeric ? 'num' : null}, text);
  const row = (v, i) => {
    const share = `${Math.min(100, time.values[i] * 100)}%`;
    const link = h('a', {href: open(v), title: v.slice(0, 2000)}, format.short(v, 80) || '(no name)');
    return h('tr', {},
        h('td', {class: 'num barred', vars: {'--part': share}}, format.fraction(time.values[i])),
        h('th', {scope: 'row', class: 'clip'}, link), h('td', {class: 'clip kind'}, category.values[i]),
        h('td', {class: 'num'}, rate && rate.values[i] > 0 ? format.number(rate.values[i]) : '–'));
  };
  const table = () => h('table', {class: 'plain', 'aria-labelledby': 'top-ops'},
      h('thead', {}, h('tr', {}, head('Self time', true), head('Op'), head('Type'), head('GFLOP/s', true))),
      h('tbody', {}, name.values.map(row)));
  return h('section', {class: 'card flush', 'aria-labelledby': 'top-ops'},
      h('h2', {class: 'pad', id: 'top-ops'}, 'Ops that take most time'),
      analysis.length === 0 ? h('p', {class: 'muted pad'}, 'No op of a framework or of XLA was recorded on a device. ', ran(ctx)) :
                              h('div', {class: 'scroll-x', role: 'region', tabindex: '0', 'aria-label': 'Table of ops'}, table()));
}

// Tips: the words of XProf, with links to our own pages where they speak of a tool.
const OURS = [
  [/^input_pipeline/, 'input'], [/^trace_viewer/, 'trace'], [/^framework_op_stats/, 'ops'],
  [/^op_profile/, 'op_profile'], [/^kernel_stats/, 'kernels'], [/^memory_profile/, 'memory']
];

function tip(ctx, link) {
  const {text, href} = plain(link);
  const words = format.device(text);
  const own = OURS.find(([re]) => re.test(words));
  if (own)
    return h('li', {}, h('a', {href: router.link(ctx.session.name, own[1], {host: ctx.hosts})}, words));
  if (href) return h('li', {}, h('a', {href, rel: 'noreferrer noopener', target: '_blank'}, words));
  return h('li', {}, words);
}

// DONE resolves to what findings answered: it may come later, and may say more than XProf's sentence.
function next(ctx, recommendation, done) {
  const p = recommendation.props;
  const said = [
    p.statement, p.device_collectives_statement, p.kernel_launch_statement, p.all_other_statement,
    p.precision_statement
  ].filter(Boolean).map((x) => plain(x).text);
  const hidden = String(p.non_bottleneck_tip_types || '').split(',').map((x) => x.trim());
  const type = column(recommendation, 'tip_type'), text = column(recommendation, 'link'),
        group = column(recommendation, 'description');
  const groups = new Map();
  if (type && text) {
    type.values.forEach((t, i) => {
      if (hidden.includes(t)) return;
      const title = plain(group ? group.values[i] : t).text;
      if (!groups.has(title)) groups.set(title, []);
      groups.get(title).push({said: text.values[i], element: tip(ctx, text.values[i])});
    });
  }
  const lead = h('p', {class: 'lead'}, said[0]);
  const tips = [...groups].map(([title, items]) => ({items, element: h('div', {}, h('h3', {}, title), h('ul', {}, items.map((x) => x.element)))}));
  done.then((found) => {
    lead.textContent = aboutInput(said[0] || '', found, found?.stepped);
    remark(lead, said[0] || '', found);
    for (const {items, element} of tips) dropForeign(element, items, found);
  });
  return xprofsAdvice(said.length ? lead : '', said.slice(1).map((x) => h('p', {}, x)), tips.map((x) => x.element));
}

function environment(table, session) {
  const e = table.props;
  const rows = [
    ['Device', e.device_type], ['Device cores', e.device_core_count], ['Hosts', e.host_count],
    ['Tasks', e.task_count],
    ['Training',
      e.is_training === 'true'      ? 'yes' :
          e.is_training === 'false' ? 'not recognized' :
                                      ''],
    ['Replicas', e.replica_count], ['Cores per replica', e.num_cores_per_replica],
    ['Captured', format.date(session.captured_unix_ms)], ['Size', format.bytes(session.bytes)]
  ].filter(([, v]) => v);
  return h('section', {class: 'card', 'aria-labelledby': 'env'}, h('h2', {id: 'env'}, 'Environment'),
      h('dl', {class: 'facts'}, rows.map(([k, v]) => [h('dt', {}, k), h('dd', {}, v)])));
}

// Whether steps changed, by how much, and which causes did it.
function againstBase(ctx, both) {
  const names = ['the base', 'this session'], text = sentence(both, names);
  return [
    h('section', {class: 'card', 'aria-labelledby': 'against'}, h('h2', {id: 'against'}, 'Against the base'), about(ctx),
        h('p', {class: 'verdict'}, text[0].toUpperCase() + text.slice(1)), h('p', {class: 'muted noise'}, noise(both), Math.max(both.a.steps, both.b.steps) < both.step_time.least_steps ? '' :
            ' The first and the last step of a run are left out here: the capture may have truncated them.'),
        h('p', {}, h('a', {href: router.link(null, 'compare', {a: ctx.base, b: ctx.session.name})}, 'Compare both in full'))),
    causesOfStep(both, ['Base', 'Here'], 'Of base', names)
  ];
}

export default {
  title: 'Overview',
  tool: 'overview_page',
  async render(ctx) {
    const both = compared(ctx), before = ctx.base ? answerOf(ctx, 'findings', {}) : null;
    const {lead, first, rest, done} = verdict(ctx, before);
    const all = (await ctx.load('overview_page')).map(columns);
    await Promise.race([done, new Promise((later) => setTimeout(later, PATIENCE_MS))]);
    const [analysis, step, env, recommendation] = all;
    const warn = diagnostics(all.find((t) => column(t, 'severity')));
    const figures = h('div', {}, tiles(analysis, step, env, null, null));
    const differences = h('div', {class: 'stack'});
    ctx.root.append(h('h1', {}, 'Overview'), lead, figures, differences, first);
    Promise.all([done, both, before]).then(([found, d, was]) => {
      figures.replaceChildren(tiles(analysis, step, env, found, {found: was, both: d}));
      if (d) differences.append(...againstBase(ctx, d));
    }, () => {});  // the page has gone
    const none = empty('No steps in this profile',
        'Steps come from jax.profiler.StepTraceAnnotation, Keras callbacks or tf.profiler.experimental.Trace. Annotate the training loop and capture again; everything else works without them.');
    const times = step.length ? stepTimes(step, env, (names) => done.then((found) => openStep(ctx, found, names))) : none;
    ctx.root.append(times);
    done.then((found) => {
      const hosts = found?.hostSteps, host = hosts?.[slowestOf(hosts)];
      if (host && PARTS.some(([, keys]) => keys.some((k) => host.steps[k])))
        times.replaceWith(stepCauses(host, hosts.length, (names) => openStep(ctx, found, names)));
      // Hosts without a device have steps, too, which the step table lacks beside a host that has one.
      if (!found?.stepped) return;
      none.remove();
      if (warn) dropDenial(warn);
    });
    ctx.root.append(rest);
    ctx.root.append(h('div', {class: 'columns'}, h('div', {}, ops(ctx, analysis)),
        h('div', {}, environment(env, ctx.session))));
    ctx.root.append(next(ctx, recommendation, done));
    if (warn) ctx.root.append(warn);
    const latency = all.find((t) => column(t, 'percentile'));
    if (latency && latency.length) {
      ctx.root.append(h('section', {class: 'card flush'}, h('h2', {class: 'pad'}, 'Inference latency'),
          h('table', {class: 'plain'},
              h('thead', {},
                  h('tr', {},
                      latency.columns.map(
                          (c) =>
                              h('th', {scope: 'col', class: c.type === 'number' ? 'num' : null}, c.label)))),
              h('tbody', {},
                  Array.from({length: latency.length},
                      (_, i) => h('tr', {},
                          latency.columns.map(
                              (c) => h('td', {class: c.type === 'number' ? 'num' : null},
                                  c.type === 'number' ? format.ms(c.values[i]) : c.values[i]))))))));
    }
  },
};
