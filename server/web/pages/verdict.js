// SPDX-License-Identifier: Apache-2.0
// What the overview begins with: the verdict, where the time of each device goes, what makes the run slow
// (findings), and how long steps last on each host (time_breakdown).

import {h} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import * as router from '../lib/router.js';
import {stacked} from '../lib/chart.js';
import {heat} from '../lib/heat.js';

const FIRST = 3;  // findings that are shown at once
const LONGEST = 5;  // steps that are linked
const MOST_DEVICES = 32, MOST_HOSTS = 64, MOST_COLUMNS = 200, BINS = 40;

// What the bars show: docs/findings.md has the causes.
export const PARTS = [
  ['Compute', ['compute_ps', 'overlapped_collectives_ps']], ['Collectives', ['exposed_collectives_ps']],
  ['Copies', ['host_copies_ps', 'device_copies_ps']], ['Callbacks', ['callback_ps']], ['Input', ['input_ps']],
  ['Compile, checkpoint', ['compile_ps', 'checkpoint_ps']], ['Launch', ['launch_ps', 'queued_ps']],
  ['Host', ['host_ps']], ['Idle, not known why', ['unknown_ps']]
];

const many = (n, what) => `${format.count(n)} ${what}${n === 1 ? '' : 's'}`;

export function traceLink(ctx, host, beginPs, ps) {
  const from = (beginPs - ps / 10) / 1e9, to = (beginPs + ps * 1.1) / 1e9;  // a little of what is around it
  return router.link(ctx.session.name, 'trace', {host, t: `${from.toFixed(6)}~${to.toFixed(6)}`});
}

// ---- findings ----

function finding(ctx, f, several) {
  const ops = f.ops.map((op, i) => [i ? ', ' : '',
    h('a', {href: router.link(ctx.session.name, 'ops', {host: ctx.hosts, q: op.name}), title: op.name.slice(0, 500)},
        format.short(op.name, 60)), ` ${format.ps(op.time_ps)}`]);
  const steps = f.steps.map((x) => `${x.name || x.step} (${format.ps(x.time_ps)})`).join(', ');
  const hosts = f.hosts.map((x) => `${x.host} (${format.fraction(x.share_percent / 100)})`).join(', ');
  const w = f.window, href = /^https?:\/\//.test(f.link) ? f.link : null;
  const fact = (name, value) => (value.length ? h('div', {}, h('dt', {}, name), ' ', h('dd', {}, value)) : '');
  return h('li', {}, h('p', {}, h('strong', {}, f.title),
             f.saving_percent > 0 ? ` – could save ${format.fraction(f.saving_percent / 100)}` : '', `. ${f.text}.`),
      h('dl', {class: 'run-in'}, fact('Hosts', several ? hosts : ''), fact('Steps', steps), fact('Where', ops),
          w ? fact('See', [h('a', {href: traceLink(ctx, w.host, w.begin_ps, w.duration_ps)},
              `${format.ps(w.duration_ps)} in the trace of ${w.host}`)]) : ''),
      h('p', {}, f.advice, ' ',
          href ? h('a', {href, rel: 'noreferrer noopener', target: '_blank'}, 'Read on') : ''));
}

function findings(ctx, all) {
  const nothing = all.devices === 0 ? 'No device ran an op in this profile.' :
                                      'No finding takes 1 % of the time or more.';
  const one = (f) => finding(ctx, f, all.hosts > 1);
  return h('section', {class: 'card findings', 'aria-labelledby': 'findings'},
      h('h2', {id: 'findings'}, 'Findings'),
      all.findings.length ? h('ol', {}, all.findings.slice(0, FIRST).map(one)) :
                            h('p', {class: 'muted'}, nothing),
      all.findings.length > FIRST ?
          h('details', {}, h('summary', {}, `${format.count(all.findings.length - FIRST)} more`),
              h('ol', {start: FIRST + 1}, all.findings.slice(FIRST).map(one))) :
          '');
}

// ---- the verdict ----

const share = (times, keys, unit) => keys.reduce((sum, k) => sum + (times[k.replace(/ps$/, unit)] || 0), 0);

// The share of the time in which devices compute: as the bars below show it.
export function computing(all) {
  return all?.devices && all.times ? share(all.times, PARTS[0][1], 'percent') / 100 : NaN;
}

// ---- where the time goes ----

function bar(device, whole = device.wall_ps, unit = 'ps') {
  const shares = PARTS.map(([label, keys], color) => ({label, color, part: share(device, keys, unit) / whole}))
                     .filter((x) => x.part > 0);
  const text = shares.map((x) => `${x.label} ${format.fraction(x.part)}`).join(', ');
  return h('div', {class: 'parts', role: 'img', 'aria-label': text, title: text},
      shares.map((x) => h('i', {class: `series-${x.color}`, vars: {'flex-grow': String(x.part)}})));
}

// The mean of all devices, and each of several below it on demand.
function devices(hosts, times, base) {
  const all = hosts.flatMap((x) => (x.devices || []).map((d) => ({host: x.host, ...d}))).filter((d) => d.wall_ps > 0);
  if (!all.length) return '';
  const seen = PARTS.map(([label, keys], color) => [label, color, keys])
                   .filter(([, , keys]) => all.some((d) => keys.some((k) => d[k] > 0)));
  const busy = (d) => (d.compute_ps + d.overlapped_collectives_ps) / d.wall_ps;
  const each = h('div', {class: 'scroll-x', role: 'region', tabindex: '0', 'aria-label': 'Table of devices'}, h('table', {class: 'plain bars', 'aria-labelledby': 'time-goes'},
          h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'Device'), h('th', {scope: 'col'}, 'Share of its time'),
              h('th', {scope: 'col', class: 'num'}, 'Computing'))),
          h('tbody', {}, all.slice(0, MOST_DEVICES).map((d) => h('tr', {},
              h('th', {scope: 'row'}, hosts.length > 1 ? `${d.host} ${d.device}` : d.device), h('td', {}, bar(d)),
              h('td', {class: 'num'}, format.fraction(busy(d))))))),
      all.length > MOST_DEVICES ? h('p', {class: 'muted'}, `and ${many(all.length - MOST_DEVICES, 'other')}`) : '');
  const mean = times;
  const part = ([, , keys]) => (mean ? ` ${format.fraction(share(times, keys, 'percent') / 100)}` : '');
  return h('section', {class: 'card', 'aria-labelledby': 'time-goes'},
      h('h2', {id: 'time-goes'}, 'Where the time goes'), mean ? bar(times, 100, 'percent') : each,
      mean && base ? [h('p', {class: 'muted base-bar'}, 'The base:'), bar(base, 100, 'percent')] : '',
      h('ul', {class: 'legend'},
          seen.filter(([, , keys]) => !mean || share(times, keys, 'percent') > 0).map((x) => h('li', {}, h('i', {class: `swatch series-${x[1]}`}), `${x[0]}${part(x)}`))),
      mean && all.length > 1 ? h('details', {class: 'each'}, h('summary', {}, `Each of ${many(all.length, 'device')}`), each) : '');
}

// ---- steps of all hosts ----

// Steps by their numbers; of a host where numbers come twice by their places.  [{name, of: [index of each host]}]
function align(hosts) {
  const twice = hosts.some((x) => new Set(x.steps.step).size < x.steps.step.length);
  const rows = new Map();
  hosts.forEach((x, k) => x.steps.step.forEach((number, i) => {
    const key = twice ? i : number;
    if (!rows.has(key)) rows.set(key, {name: String(number), of: new Array(hosts.length).fill(-1)});
    rows.get(key).of[k] = i;
  }));
  return [...rows.entries()].sort(([a], [b]) => a - b).map(([, row]) => row);
}

// Smallest value that P percent of the sorted values do not exceed.
function percentile(sorted, p) {
  return sorted[Math.max(0, Math.ceil(sorted.length * p / 100) - 1)];
}

// Whether averages leave out the first and the last step, which the capture may have truncated: of more than five
// steps of a GPU (docs/steps.md).
const truncated = (rows, hosts) => rows.length > 5 && hosts.some((x) => x.devices?.some((d) => d.kind === 'gpu'));

// The host that the others wait for: whose steps take longest in total.
export function slowestOf(hosts) {
  const totals = hosts.map((x) => x.steps.wall_ps.reduce((a, b) => a + b, 0));
  return totals.indexOf(Math.max(...totals));
}

// Of all steps the mean of the hosts, and that of the slowest host; where it lacks a step, of the slowest that has it.
function averages(rows, hosts) {
  const kept = truncated(rows, hosts) ? rows.slice(1, -1) : rows;
  const slowest = slowestOf(hosts);
  const all = kept.map((row) => row.of.map((i, k) => (i < 0 ? NaN : hosts[k].steps.wall_ps[i])));
  const times = all.map((t) => t.filter(Number.isFinite));
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  return h('p', {class: 'averages'}, `Average step time: mean of the hosts ${format.ps(mean(times.map(mean)))}, slowest host ${
      format.ps(mean(all.map((t, i) => (Number.isFinite(t[slowest]) ? t[slowest] : Math.max(...times[i])))))}`);
}

function histogram(times) {
  const sorted = Float64Array.from(times).sort();
  const least = sorted[0], greatest = sorted[sorted.length - 1];
  const bins = greatest > least ? Math.min(BINS, Math.max(5, Math.ceil(Math.sqrt(sorted.length)) * 2)) : 1;
  const size = (greatest - least) / bins || 1, counts = new Float64Array(bins);
  for (const v of sorted) counts[Math.min(bins - 1, Math.floor((v - least) / size))]++;
  const said = [50, 95, 99].map((p) => `p${p} ${format.ps(percentile(sorted, p))}`).join(', ');
  return [
    h('p', {class: 'percentiles'}, `${many(sorted.length, 'step')}: ${said}`), stacked({
      label: `How many of ${many(sorted.length, 'step')} last how long: ${said}`,
      names: Array.from(counts, (_, i) => format.ps(least + (i + 0.5) * size)),
      series: [{label: 'Steps', color: 0, values: counts}],
      format: format.count,
      height: 180
    })
  ];
}

// Columns of at most MOST steps: [first, behind the last].
function groups(n, most) {
  const size = Math.ceil(n / most);
  return Array.from({length: Math.ceil(n / size)}, (_, i) => [i * size, Math.min(n, (i + 1) * size)]);
}

const span = (rows, [from, to]) => (to - from > 1 ? `${rows[from].name} to ${rows[to - 1].name}` : rows[from].name);

function overHosts(rows, hosts) {
  const cut = groups(rows.length, 400);
  const times = (row) => row.of.map((i, k) => (i < 0 ? NaN : hosts[k].steps.wall_ps[i])).filter(Number.isFinite);
  const columns = cut.map(([from, to]) => rows.slice(from, to).flatMap(times));
  return stacked({
    label: `Time of ${many(rows.length, 'step')} on ${many(hosts.length, 'host')}: the mean, and a line from the shortest to the longest`,
    names: cut.map((c) => span(rows, c)),
    series: [{
      label: 'Mean of the hosts',
      color: 0,
      values: Float64Array.from(columns, (v) => v.reduce((a, b) => a + b, 0) / v.length)
    }],
    ranges: columns.map((v) => ({
                          least: v.reduce((a, b) => Math.min(a, b), Infinity),
                          greatest: v.reduce((a, b) => Math.max(a, b), 0)
                        })),
    format: format.ps
  });
}

function map(ctx, rows, hosts) {
  const cut = groups(rows.length, MOST_COLUMNS), shown = hosts.slice(0, MOST_HOSTS);
  // Of a column the longest step of the host.
  const worst = shown.map((x, k) => cut.map(([from, to]) => {
    let best = -1;
    for (let r = from; r < to; r++) {
      const i = rows[r].of[k];
      if (i >= 0 && (best < 0 || x.steps.wall_ps[i] > x.steps.wall_ps[best])) best = i;
    }
    return best;
  }));
  return heat({
    label: `Time of each step on each of ${many(shown.length, 'host')}`,
    rows: shown.map((x) => x.host),
    columns: cut.map((c) => span(rows, c)),
    values: worst.map((line, k) => line.map((i) => (i < 0 ? NaN : shown[k].steps.wall_ps[i]))),
    describe: (k, c) => `${shown[k].host}, step ${worst[k][c] < 0 ? `${span(rows, cut[c])}: not there` :
        `${shown[k].steps.step[worst[k][c]]}: ${format.ps(shown[k].steps.wall_ps[worst[k][c]])}`}`,
    open: (k, c) => {
      const i = worst[k][c], t = shown[k].steps;
      if (i >= 0) location.hash = traceLink(ctx, shown[k].host, t.begin_ps[i], t.wall_ps[i]);
    }
  });
}

function steps(ctx, answer) {
  const hosts = answer.filter((x) => x.steps && x.steps.step.length);
  if (!hosts.length) return '';
  const rows = align(hosts);
  if (hosts.length === 1 && rows.length === 1) return '';  // one number, which a tile has
  const slowest = rows.map((row) => Math.max(...row.of.map((i, k) => (i < 0 ? 0 : hosts[k].steps.wall_ps[i]))));
  const several = hosts.length > 1;
  return h('section', {class: 'card', 'aria-labelledby': 'all-steps'},
      h('h2', {id: 'all-steps'}, several ? 'Steps of all hosts' : 'How long steps last'),
      h('p', {class: 'muted'}, `The histogram has ${several ? 'the slowest host of each step' : 'all steps'}.${
          truncated(rows, hosts) ? ' Averages leave out the first and the last step, which the capture may have truncated.' : ''}`),
      several ? averages(rows, hosts) : '', histogram(slowest), longest(ctx, rows, hosts, slowest), several ? [overHosts(rows, hosts), map(ctx, rows, hosts)] : '');
}

// The longest steps, with the trace of each where it took longest.
function longest(ctx, rows, hosts, times) {
  const order = Array.from(times.keys()).sort((a, b) => times[b] - times[a]).slice(0, LONGEST);
  return h('p', {class: 'longest'}, 'Longest in the trace: ', order.map((r, n) => {
    const k = rows[r].of.findIndex((i, host) => i >= 0 && hosts[host].steps.wall_ps[i] === times[r]), i = rows[r].of[k];
    return [n ? ', ' : '',
      h('a', {href: traceLink(ctx, hosts[k].host, hosts[k].steps.begin_ps[i], times[r])}, `step ${rows[r].name}`), ` ${format.ps(times[r])}`];
  }));
}

// Whether a host has steps, of HOSTS as time_breakdown has them: XProf's tables of steps lack those of hosts without a
// device beside a host that has one.
const stepped = (hosts) => hosts.some((x) => x.steps?.step.length > 0);

// Asks for that alone.
export function anySteps(ctx) {
  return api.tool(ctx.session.name, 'time_breakdown', ctx.hosts, {view: 'steps'}, ctx.signal)
      .then((answer) => stepped(answer.data.hosts), () => false);
}

// Removes from the list of DIAGNOSTICS what denies all steps; the list goes when nothing of it is left.
export function dropDenial(diagnostics) {
  for (const li of diagnostics.querySelectorAll('li'))
    if (/No step marker observed/.test(li.textContent)) li.remove();
  if (!diagnostics.querySelector('li')) diagnostics.remove();
}

// XProf's sentence about input, which knows tf.data and infeed alone, or, where it says the opposite of FOUND (the
// answer of findings, or null), the share that is waited for.  HAS: whether there are steps, which it may deny.
export function aboutInput(sentence, found, has) {
  if (has && /No step time measured/.test(sentence))
    return 'What limits the steps is unknown: XProf only rates hosts with a device, and theirs have no steps.';
  const wait = found?.findings.find((f) => f.kind === 'input_wait');
  return wait && /NOT input-bound/.test(sentence) ?
      `The program waits for input in ${format.fraction(wait.share_percent / 100)} of the time. ${wait.advice}` :
      sentence;
}

// Where XProf's SENTENCE, which PLACE shows, says of input what FOUND does not: behind it whose it is, and why they differ.
// Time that is idle for no known reason may be input.
export function remark(place, sentence, found) {
  const [, how, percent] = /(HIGHLY|MODERATELY|POTENTIALLY) input-bound because ([\d.]+)%/.exec(sentence) || [];
  const share = (kind) => found.findings.find((f) => f.kind === kind)?.share_percent || 0;
  const unknown = () => Number(share('idle_unknown').toFixed(1));  // as precise as the sentence's percentage
  if (!how || !found?.devices || share('input_wait') > 0 || unknown() >= Number(percent)) return;
  const why = how === 'POTENTIALLY' ? 'all time that it cannot name may be input' :
                                      'what the host does for input and copies to the device are waiting for it';
  place.after(h('p', {class: 'muted'}, `This sentence is XProf’s, to which ${
      why}; the findings tell idle time by its cause, and see less than 1 % of the time waiting for input.`));
}

// Removes from ITEMS, [{said: advice as XProf has it, element}], those whose advice is TensorFlow's alone when FOUND says
// that the program is of another framework; WHOLE goes when nothing of it is left.
export function dropForeign(whole, items, found) {
  if (!found?.framework || found.framework === 'tensorflow') return;
  const foreign = items.filter(({said}) => /tf\.data|TF2? Profiler|tensorflow\.org/.test(said));
  if (foreign.length === items.length) whole.remove();
  for (const {element} of foreign) element.remove();
}

// A fold for what XProf's pages say in the same place.
export function xprofsAdvice(...content) {
  return h('details', {class: 'card next'}, h('summary', {}, 'XProf’s own advice'),
      h('p', {class: 'muted'}, 'These sentences are XProf’s, word for word. Where they differ from the findings, the findings are measured.'),
      h('div', {class: 'said'}, content));
}

// Starts to ask; {lead, first, rest, done}: the verdict's sentence, two places, which fill when the answers are there, and what findings answered
// once it did, with `stepped`, whether a host has steps, and `hostSteps`, the hosts that have some; or null.
// BASE: resolves to what findings answered for the base session, or to null.
export function verdict(ctx, base) {
  const lead = h('p', {class: 'headline'}, '…'), first = h('div', {class: 'stack'}), rest = h('div', {class: 'stack'});
  const ask = (tool, options) => api.tool(ctx.session.name, tool, ctx.hosts, options, ctx.signal);
  const done = Promise.all([ask('findings'), ask('time_breakdown', {view: 'steps'}), base])
                   .then(([found, times, before]) => {
                     lead.textContent = `${found.data.verdict.text}.`;
                     first.append(devices(times.data.hosts, found.data.times, before?.times), findings(ctx, found.data));
                     rest.append(steps(ctx, times.data.hosts));
                     const hostSteps = times.data.hosts.filter((x) => x.steps?.step.length);
                     return {...found.data, stepped: stepped(times.data.hosts), hostSteps};
                   })
                   .catch((e) => {
                     lead.textContent = '';
                     if (e.name !== 'AbortError')
                       first.append(h('p', {class: 'note'}, `The cause is not known: ${e.message}`));
                     return null;
                   });
  return {lead, first, rest, done};
}
