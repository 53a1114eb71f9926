// SPDX-License-Identifier: Apache-2.0
// Roofline: what ops do per second beside what the device could, and what limits them.

import {h} from '../lib/dom.js';
import * as format from '../lib/format.js';
import {DataTable} from '../lib/table.js';
import {columns, column, inOrder} from '../lib/gviz.js';
import {withoutImpossible, withUnits} from '../lib/units.js';
import {empty} from '../lib/notes.js';
import {isCpu, peaks, peaksForm} from '../lib/peaks.js';
import {decades, roofline} from '../lib/scatter.js';
import {detail, facts, tableState} from '../lib/detail.js';
import {opLinks, plainSource} from '../lib/programs.js';

const MOST_POINTS = 300, COLORS = 6, LITTLE = 0.001;  // of the time
const GIBI = 2 ** 30 / 1e9;
const ROOFS = [
  ['HBM', 'peak_hbm_bw', 'hbm_ridge_point', 0],
  ['CMEM read', 'peak_cmem_read_bw', 'cmem_read_ridge_point', 2],
  ['VMEM or shared memory', 'peak_vmem_write_bw', 'vmem_write_ridge_point', 1],
];
const SHOWN = [
  'operation', 'category', 'occurrences', 'total_self_time', 'total_self_time_percent', 'measured_flop_rate',
  'hbm_bw', 'operational_intensity', 'bound_by', 'roofline_efficiency', 'compute_efficiency',
  'max_mem_bw_utilization'
];
const LABELS = {
  operation: 'Op',
  occurrences: 'Count',
  total_self_time: 'Self time',
  total_self_time_percent: 'Share',
  measured_flop_rate: 'GFLOP/s',
  hbm_bw: 'GiB/s',
  operational_intensity: 'FLOP/byte',
  bound_by: 'Bound by',
  roofline_efficiency: 'Of the roof',
  compute_efficiency: 'Of peak FLOP/s',
  max_mem_bw_utilization: 'Of peak bandwidth'
};

const gflops = (v) => format.flops(v * 1e9);
const gib = (v) => (v >= 1024 ? `${format.number(v / 1024)} TiB/s` : `${format.number(v)} GiB/s`);

// Rows of TABLE for the whole profile, without what waits for input and output.
function opRows(table) {
  const step = column(table, 'step').values, rank = column(table, 'rank').values;
  const transfers = column(table, 'include_infeed_outfeed');
  const out = [];
  for (let i = 0; i < table.length; i++)
    if (step[i] === 'Total' && (!transfers || transfers.values[i] === 'no')) out.push([i, rank[i]]);
  return {program: out.find((x) => x[1] === 0), ops: out.filter((x) => x[1] > 0).map((x) => x[0])};
}

// ROWS without those of little time beyond the decades of all others: for them the chart would be mostly empty.
function withoutStray(rows, share, ...axes) {
  const ranges = axes.map((of) => decades(rows.filter((r) => share(r) >= LITTLE).map(of)));
  const near = rows.filter((r) => axes.every((of, i) => of(r) >= 10 ** ranges[i][0] && of(r) <= 10 ** ranges[i][1]));
  return near.length ? near : rows;
}

// A rate or a share of a peak that is 0 where costs or peaks are missing is not known.
function withoutUnknown(table) {
  const bound = column(table, 'bound_by').values;
  const rate = (c) => c.type === 'number' && /_(bw|rate|intensity|efficiency|utilization)$/.test(c.id);
  return {...table, columns: table.columns.map((c) => (rate(c) ? {...c, values: c.values.map((v, i) => (v === 0 && bound[i] === 'Unknown' ? NaN : v))} : c))};
}

function roofsOf(props) {
  const top = Number(props.peak_flop_rate) || 0;
  const out = [];
  for (const [name, bandwidth, ridge, color] of ROOFS) {
    const peak = Number(props[bandwidth]) || 0;
    if (!(peak > 0)) continue;
    const at = Number(props[ridge]) || 0, label = name === 'HBM' && props.device_type === 'CPU' ? 'Main memory' : name;
    out.push({
      label: `${label}: ${gib(peak)}, ${top > 0 ? `ridge at ${format.number(at)} operations for each byte` : 'no peak of operations is known'}`,
      slope: peak * GIBI,
      top,
      color
    });
  }
  return out;
}

function tiles(table, found, props) {
  const of = (id) => (found.program ? column(table, id).values[found.program[0]] : NaN);
  const tile = (label, value, note) =>
      h('div', {class: 'tile'}, h('dt', {}, label), h('dd', {}, value), h('dd', {class: 'muted small'}, note));
  const peak = Number(props.peak_flop_rate) || 0;
  return h('dl', {class: 'tiles'},
      tile('The program', gflops(of('measured_flop_rate')),
          peak > 0 ? `${format.fraction(of('compute_efficiency'))} of ${gflops(peak)}` : 'the device’s peak is not known'),
      tile('Main memory', gib(of('hbm_bw')), `${format.number(of('operational_intensity'))} operations for each byte`),
      tile('Limited by', (found.program && column(table, 'bound_by').values[found.program[0]]) || 'Unknown',
          String(props.device_type || '')));
}

export default {
  title: 'Roofline',
  tool: 'roofline_model',
  async render(ctx) {
    const answer = await ctx.load('roofline_model', peaks(ctx));
    const given = columns(Array.isArray(answer) ? answer[0] : answer);
    const table = given.length ? withoutUnknown(withoutImpossible(given)) : given;
    ctx.root.append(h('h1', {}, 'Roofline'));
    const found = table.length ? opRows(table) : {ops: []};
    if (!found.ops.length) {
      ctx.root.append(empty('No ops of a device in this profile',
          'A roofline needs the times of ops on a device, and their programs in the profile.'));
      return;
    }
    const value = (id, row) => column(table, id).values[row];
    const time = found.ops.reduce((a, r) => a + value('total_self_time', r), 0);
    const rated = found.ops.filter((r) => value('operational_intensity', r) > 0 && value('measured_flop_rate', r) > 0)
                      .sort((a, b) => value('total_self_time', b) - value('total_self_time', a))
                      .slice(0, MOST_POINTS);
    const drawn = withoutStray(rated, (r) => value('total_self_time', r) / time, (r) => value('operational_intensity', r),
        (r) => value('measured_flop_rate', r));
    const side = detail('Op');
    const all = withUnits(table.columns, ctx, 'roofline_model')
                    .filter((c) => !['step', 'rank', 'include_infeed_outfeed'].includes(c.id))
                    .map(plainSource);
    const cols = inOrder(all, SHOWN).map((c) => ({...c, title: c.label, label: LABELS[c.id] || c.label}));
    const program = column(table, 'hlo_module_id');
    const open = (row) => side.show(value('operation', row), [
      ...facts(cols, row),
      ['See also', opLinks(ctx, {program: program ? program.values[row] : '', op: value('operation', row)})]
    ]);
    const categories = [...new Set(drawn.map((r) => value('category', r)))];
    const points = drawn.map((r) => ({
      x: value('operational_intensity', r),
      y: value('measured_flop_rate', r),
      size: time > 0 ? value('total_self_time', r) / time : 0,
      color: 3 + categories.indexOf(value('category', r)) % COLORS,
      text: `${value('operation', r)} (${value('category', r)}): ${gflops(value('measured_flop_rate', r))}, ${
          format.number(value('operational_intensity', r))} operations for each byte, ${
          format.us(value('total_self_time', r))}, limited by ${value('bound_by', r)}`
    }));
    if (isCpu(table)) ctx.root.append(peaksForm(ctx));
    ctx.root.append(tiles(table, found, table.props),
        h('section', {class: 'card'}, h('h2', {}, 'Ops under the roofs of the device'),
            drawn.length ? roofline({
              label: `Roofline of ${drawn.length} ops`,
              points,
              groups: categories.slice(0, COLORS).map((label, i) => ({label, color: 3 + i})),
              roofs: roofsOf(table.props),
              formatX: format.number,
              formatY: gflops,
              onOpen: (i) => open(drawn[i])
            }) :
                           h('p', {class: 'muted'}, 'No op has both operations and bytes.'),
            drawn.length < found.ops.length ? h('p', {class: 'muted small'},
                `${found.ops.length - drawn.length} ops are only in the table: they compute nothing, their costs are not known, or they take less than ${format.fraction(LITTLE)} of the time and are far from the others.`) :
                                              ''));
    const rows = found.ops;
    const data = new DataTable({
      columns: cols.map((c) => ({
        ...c,
        values: c.type === 'number' ? Float64Array.from(rows, (r) => c.values[r]) : rows.map((r) => c.values[r]),
        hidden: !SHOWN.includes(c.id)
      })),
      length: rows.length,
      caption: 'Ops',
      csv: `roofline_${ctx.session.name.replace(/[^\w.-]+/g, '_')}.csv`,
      facetColumns: ['category', 'bound_by'],
      ...tableState(ctx, {id: 'total_self_time', down: true}),
      onOpen: (i) => open(rows[i]),
    });
    ctx.root.append(h('section', {class: 'card flush'}, data.element), side.element);
  },
};
