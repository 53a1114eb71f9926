// SPDX-License-Identifier: Apache-2.0
// Framework ops: sort, filter, export.

import {h} from '../lib/dom.js';
import * as format from '../lib/format.js';
import * as router from '../lib/router.js';
import {DataTable} from '../lib/table.js';
import {columns, column, inOrder} from '../lib/gviz.js';
import {withUnits} from '../lib/units.js';
import {empty} from '../lib/notes.js';
import {parts} from '../lib/chart.js';
import {detail, facts, tableState} from '../lib/detail.js';
import {DIFFERENCES, joinBase, opsBy, sortOf, withSigns} from '../lib/base.js';

const GROUPS = {op: 'Op', shape: 'Op and shapes', module: 'Module'};
const SHARES = /percent$|utilization$/;
const RARE = [
  'rank', 'device_cumulative_total_self_time_percent', 'Host_cumulative_total_self_time_percent',
  'model_flop_rate', 'operational_intensity', 'eager', 'avg_self_time'
];
const LABELS = {
  operation: 'Op',
  type: 'Type',
  host_or_device: 'Where',
  occurrences: 'Count',
  total_time: 'Total time',
  avg_time: 'Avg. time',
  total_self_time: 'Self time',
  avg_self_time: 'Avg. self time',
  device_total_self_time_percent: 'Device share',
  host_total_self_time_percent: 'Host share',
  measured_flop_rate: 'GFLOP/s',
  model_flop_rate: 'Model GFLOP/s',
  measured_memory_bw: 'GiB/s',
  operational_intensity: 'FLOP/byte',
  gpu_tensorcore_utilization: 'Matrix units',
  bound_by: 'Bound by',
  eager: 'Mode',
};

// Where an op ran: the trace has its name in the arguments of events, or else the HLO op that it became.
const occurrences = (ctx, op) => [
  h('a', {href: router.link(ctx.session.name, 'trace', {host: ctx.hosts, q: op, in: 'arguments'})}, 'Trace'), ', ',
  h('a', {href: router.link(ctx.session.name, 'hlo_ops', {host: ctx.hosts, q: op})}, 'HLO ops')
];

export default {
  title: 'Framework ops',
  tool: 'framework_op_stats',
  async render(ctx) {
    const idle = ctx.params.get('idle') === '1';
    const group = GROUPS[ctx.params.get('group')] ? ctx.params.get('group') : 'op';
    const both = (await ctx.load('framework_op_stats', {group_by: group})).map(columns);
    const table = both[idle || both.length < 2 ? 0 : 1];
    const check = h('label', {class: 'check'}, h('input', {
      type: 'checkbox',
      checked: idle,
      id: 'idle',
      onchange: (e) => ctx.update({idle: e.target.checked ? '1' : ''}, true)
    }),
        ' Idle time');
    const groups = h('select', {id: 'group', onchange: () => ctx.update({group: groups.value}, true)},
        Object.entries(GROUPS).map(([value, text]) => h('option', {value}, text)));
    groups.value = group;
    ctx.root.append(h('div', {class: 'title'}, h('h1', {}, 'Framework ops'),
        h('label', {class: 'check'}, 'Rows ', groups), check));
    if (!table || !table.length) {
      ctx.root.append(empty('No ops in this profile',
          'The profile holds no events of framework ops. The trace shows all recorded events. Capture while the program computes.'));
      return;
    }
    const where = column(table, 'host_or_device').values, self = column(table, 'total_self_time').values,
          type = column(table, 'type').values;
    const sums = new Map();
    for (let i = 0; i < table.length; i++)
      if (where[i] === 'Device') sums.set(type[i], (sums.get(type[i]) || 0) + self[i]);
    const sorted = [...sums].sort((a, b) => b[1] - a[1]);
    const items = sorted.slice(0, 8).map(([label, value], i) => ({label, value, color: i}));
    const rest = sorted.slice(8).reduce((t, x) => t + x[1], 0);
    if (rest > 0) items.push({label: 'other', value: rest, color: 8});
    const chart = parts({label: 'Self time on the device by type', items, format: format.us});
    if (chart)
      ctx.root.append(h('section', {class: 'card'}, h('h2', {}, 'Self time on the device by type'), chart));
    const [joined, note] = await joinBase(ctx, 'framework_op_stats', {group_by: group}, table, ['operation', 'host_or_device'], 'total_self_time',
        (a) => a.map(columns)[idle || a.length < 2 ? 0 : 1], opsBy('operation', 'operation', 'host_or_device'));
    const times = ['occurrences', 'total_time'], own = ['total_self_time', ...DIFFERENCES];
    const order = ['operation', 'type', 'host_or_device', ...(ctx.base ? [...own, ...times] : [...times, ...own])];
    const cols = withSigns(inOrder(withUnits(joined.columns, ctx, 'framework_op_stats'), order)).map((c) => ({...c, title: c.label, label: LABELS[c.id] || c.label}));
    const side = detail('Op');
    const data = new DataTable({
      columns: cols.map((c) => ({
        ...c,
        hidden: RARE.includes(c.id),
        bar: SHARES.test(c.id) && !/cumulative/.test(c.id),
      })),
      length: joined.length,
      caption: 'Framework ops',
      csv: `framework_op_stats_${ctx.session.name.replace(/[^\w.-]+/g, '_')}.csv`,
      facetColumns: ['host_or_device', 'type', 'bound_by', 'where'],
      ...tableState(ctx, sortOf(ctx, 'total_self_time')),
      onOpen: (row) =>
          side.show(column(joined, 'operation').values[row], [
        ...facts(cols, row),
        ['See also', occurrences(ctx, column(joined, 'operation').values[row])]
      ]),
    });
    ctx.root.append(note, h('section', {class: 'card flush'}, data.element), side.element);
  },
};
