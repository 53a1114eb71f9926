// SPDX-License-Identifier: Apache-2.0
// Memory over time, and what was allocated at the peak.

import {h} from '../lib/dom.js';
import * as format from '../lib/format.js';
import {DataTable} from '../lib/table.js';
import {empty} from '../lib/notes.js';
import {levels, byteTicks, parts} from '../lib/chart.js';
import {detail, facts, tableState} from '../lib/detail.js';
import * as api from '../lib/api.js';
import {answerOf} from '../lib/base.js';
import {percent, section, sides, signed, text} from '../lib/sides.js';

const SHOWN = 8;  // ops of the picture
const MOST_ASKED = 32;  // hosts of which one is searched that has memory
const HOW_TO_RECORD =
    'Capture again with the host tracer at level 2, its default: xplanectl capture --host-tracer 2, or host_tracer_level of jax.profiler.ProfileOptions and tf.profiler.experimental.ProfilerOptions.';
const num = (x) => Number(x) || 0;

function timeline(name, a) {
  const samples = a.sampledTimelineSnapshots || [];
  if (!samples.length)
    return empty('No timeline for this allocator', 'The profile has no allocation events of it.');
  const x = Float64Array.from(samples, (s) => num(s.timeOffsetPs));
  const pick = (f) => Float64Array.from(samples, (s) => num(s.aggregationStats && s.aggregationStats[f]));
  const fragmentation = pick('fragmentation');
  const stack = pick('stackReservedBytes'), heap = pick('heapAllocatedBytes');
  const peak = num(a.profileSummary && a.profileSummary.peakStatsTimePs);
  const what = samples.map((s) => s.activityMetadata || {});
  const series = [{label: 'Stack', color: 1, values: stack}, {label: 'Heap', color: 0, values: heap}].filter(
      (s) => s.values.some((v) => v > 0));
  return levels({
    label: `Memory of ${name} over time`,
    x,
    series: series.length ? series : [{label: 'Heap', color: 0, values: heap}],
    marks: peak >= x[0] && peak <= x[x.length - 1] ? [{x: peak, label: 'peak'}] : [],
    format: format.bytes,
    formatX: format.ps,
    scale: byteTicks,
    describeExtra: (i) => `, fragmentation ${format.fraction(fragmentation[i])}; ${
        String(what[i].memoryActivity || '').toLowerCase()} of ${format.bytes(num(what[i].allocationBytes))}${
        what[i].tfOpName ? ` by ${what[i].tfOpName}` : ''}`,
  });
}

function peakRows(a) {
  const rows = [];
  for (const x of a.activeAllocations || []) {
    const at = num(x.snapshotIndex);
    const special = (a.specialAllocations || [])[num(x.specialIndex)];
    const snapshot = at >= 0 ? (a.memoryProfileSnapshots || [])[at] : null;
    const m = snapshot ? snapshot.activityMetadata : at < 0 ? special : null;
    if (m) rows.push({...m, n: num(x.numOccurrences) || 1});
  }
  return rows;
}

// What is allocated at the peak as a picture: a part for each op, as wide as what it holds.
function peakPicture(a) {
  const sums = new Map();
  for (const r of peakRows(a)) {
    const name = r.tfOpName || '(not named)';
    sums.set(name, (sums.get(name) || 0) + num(r.allocationBytes) * r.n);
  }
  const sorted = [...sums].sort((x, y) => y[1] - x[1]);
  const items = sorted.slice(0, SHOWN).map(([label, value], i) => ({label: format.short(label, 60), value, color: i}));
  const rest = sorted.slice(SHOWN).reduce((t, x) => t + x[1], 0);
  if (rest > 0) items.push({label: `${format.count(sorted.length - SHOWN)} others`, value: rest, color: SHOWN});
  return parts({label: 'Allocated at the peak', items, format: format.bytes});
}

function peakTable(ctx, a, csv, side) {
  const rows = peakRows(a);
  const text = (id, label, f, width) => ({id, label, type: 'string', values: rows.map((r) => f(r)), width});
  const cols = [
    text('op', 'Op', (r) => r.tfOpName || '(not named)', 320),
    {
      id: 'bytes',
      label: 'Allocated',
      type: 'number',
      values: Float64Array.from(rows, (r) => num(r.allocationBytes) * r.n),
      format: format.bytes,
      unit: 'bytes'
    },
    {
      id: 'requested',
      label: 'Requested',
      type: 'number',
      values: Float64Array.from(rows, (r) => num(r.requestedBytes) * r.n),
      format: format.bytes,
      unit: 'bytes'
    },
    {id: 'count', label: 'Count', type: 'number', values: Float64Array.from(rows, (r) => r.n)},
    text('region', 'Region', (r) => r.regionType || '–'),
    text('dtype', 'Type', (r) => (r.dataType === 'INVALID' ? '–' : r.dataType || '–')),
    text('shape', 'Shape', (r) => r.tensorShape || '–'),
  ];
  return new DataTable({
    columns: cols,
    length: rows.length,
    caption: 'Allocations at the peak',
    csv,
    facetColumns: ['region', 'dtype'],
    ...tableState(ctx, {id: 'bytes', down: true}),
    onOpen: (r) => side.show(cols[0].values[r], facts(cols, r)),
    empty: 'Nothing was allocated at the peak.',
  });
}

async function baseOf(ctx, host) {
  const all = (await api.sessions(ctx.signal)).data.sessions || [], hosts = all.find((s) => s.name === ctx.base)?.hosts.map((x) => x.name) || [];
  return answerOf(ctx, 'memory_profile', {}, hosts.length ? [hosts.includes(host) ? host : hosts[0]] : []);
}

// What each op holds at the peak, here and in the base.
function baseTable(here, there) {
  const sums = (rows) => rows.reduce((m, r) => m.set(r.tfOpName || '(not named)', (m.get(r.tfOpName || '(not named)') || 0) + num(r.allocationBytes) * r.n), new Map());
  const now = sums(here), before = sums(there);
  const list = [...new Set([...now.keys(), ...before.keys()])].map((op) => {
    const a = before.get(op) || 0, b = now.get(op) || 0;
    return {op, a_bytes: a, b_bytes: b, difference_bytes: b - a, difference_percent: a > 0 ? (b - a) / a * 100 : null};
  }).sort((x, y) => Math.abs(y.difference_bytes) - Math.abs(x.difference_bytes));
  return section('memory', 'At the peak, against the base', list,
      [text(list, 'op', 'Op', 'op', 320), ...sides(list, ['a_bytes', 'b_bytes', 'difference_bytes'], format.bytes, ['Base', 'Here']), percent(list, 'Of base')]);
}

// {data, host} of the chosen host, or else of the first that has threads of the host, where allocators report; data is
// null where none has: the tool has no answer then, as XProf has none, and of a page that is no error.
async function ask(ctx) {
  const hosts = ctx.hosts.length ? ctx.oneHost() : ctx.session.hosts.slice(0, MOST_ASKED).map((x) => x.name);
  for (const host of hosts) {
    try {
      const data = await ctx.load('memory_profile', {}, [host]);
      ctx.oneHost(host);
      return {data, host};
    } catch (e) {
      if (e.code !== 'FAILED_PRECONDITION' || !e.message.includes('has no plane /host:CPU')) throw e;
    }
  }
  return {data: null, host: hosts.length > 1 ? `each of ${hosts.length} hosts` : hosts[0]};
}

export default {
  title: 'Memory',
  tool: 'memory_profile',
  async render(ctx) {
    const {data, host} = await ask(ctx);
    const per = (data && data.memoryProfilePerAllocator) || {};
    const ids = (data && data.memoryIds && data.memoryIds.length ? data.memoryIds : Object.keys(per))
                    .filter((id) => per[id]);
    const select = h('select', {
      'aria-label': 'Allocator',
      id: 'allocator',
      onchange: () => ctx.update({allocator: select.value}, true)
    },
        ids.map((id) => h('option', {value: id}, id)));
    ctx.root.append(h('div', {class: 'title'}, h('h1', {}, 'Memory'), ids.length > 1 ? select : '',
        ctx.session.hosts.length > 1 ? h('span', {class: 'muted'}, host) : ''));
    if (!data) {
      ctx.root.append(empty('No memory in this profile', `The profile of ${host} has no threads of the host (plane /host:CPU), where allocators report.`, HOW_TO_RECORD));
      return;
    }
    if (!ids.length) {
      ctx.root.append(empty('No allocations in this profile',
          'Allocators report to the profiler on GPUs and where TensorFlow allocates; JAX on CPU does not record any.'));
      return;
    }
    const busiest = ids.reduce((best, id) => (num(per[id].profileSummary?.peakBytesUsageLifetime) >
                                           num(per[best].profileSummary?.peakBytesUsageLifetime) ?
                                       id :
                                       best),
        ids[0]);
    const id = ids.includes(ctx.params.get('allocator')) ? ctx.params.get('allocator') : busiest;
    select.value = id;
    const a = per[id], p = a.profileSummary || {}, peak = p.peakStats || {};
    const tile = (label, value, note) => h('div', {class: 'tile'}, h('dt', {}, label), h('dd', {}, value),
        note ? h('dd', {class: 'muted small'}, note) : '');
    const capacity = num(p.memoryCapacity), used = num(peak.peakBytesInUse);
    // The base's peak, of its host of this name or else its first, in the same allocator.
    const base = ctx.base ? await baseOf(ctx, host) : null, before = base?.memoryProfilePerAllocator?.[id]?.profileSummary?.peakStats;
    const differs = (v, key) => (before ? `; base ${format.bytes(num(before[key]))}, ${signed(format.bytes)(v - num(before[key]))}` : '');
    ctx.root.append(h('dl', {class: 'tiles'},
        tile('Peak in this profile', format.bytes(used),
            (capacity > used ? `${format.fraction(used / capacity)} of ${format.bytes(capacity)}` : '') + differs(used, 'peakBytesInUse')),
        tile('Peak of the heap since start', format.bytes(num(p.peakBytesUsageLifetime))),
        tile('Heap at the peak', format.bytes(num(peak.heapAllocatedBytes)),
            `stack ${format.bytes(num(peak.stackReservedBytes))}, free ${format.bytes(num(peak.freeMemoryBytes))}${
                differs(num(peak.heapAllocatedBytes), 'heapAllocatedBytes')}`),
        tile('Fragmentation at the peak', format.fraction(num(peak.fragmentation))),
        tile('Time of the peak', format.ps(num(p.peakStatsTimePs)))));
    const side = detail('Allocation'), picture = peakPicture(a);
    if (before) ctx.root.append(baseTable(peakRows(a), peakRows(base.memoryProfilePerAllocator[id])));
    ctx.root.append(h('section', {class: 'card'}, h('h2', {}, 'Memory over time'), timeline(id, a)),
        picture ? h('section', {class: 'card'}, h('h2', {}, 'What fills it at the peak'), picture) : '',
        h('section', {class: 'card flush'}, h('h2', {class: 'pad'}, 'Allocations at the peak'),
            peakTable(ctx, a, `memory_${host.replace(/[^\w.-]+/g, '_')}.csv`, side).element),
        side.element);
  },
};
