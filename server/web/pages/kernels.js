// SPDX-License-Identifier: Apache-2.0
// GPU kernels.

import {h} from '../lib/dom.js';
import * as format from '../lib/format.js';
import * as router from '../lib/router.js';
import {DataTable} from '../lib/table.js';
import {columns, column, inOrder} from '../lib/gviz.js';
import {withUnits} from '../lib/units.js';
import {empty} from '../lib/notes.js';
import {parts} from '../lib/chart.js';
import {detail, facts, tableState} from '../lib/detail.js';
import {DIFFERENCES, joinBase, kernelName, partners, sortOf, withSigns} from '../lib/base.js';
import {launchQueue} from './launch_queue.js';

const LABELS = {
  kernel_name: 'Kernel',
  registers_per_thread: 'Registers',
  shmem_bytes: 'Shared memory',
  block_dim: 'Block',
  grid_dim: 'Grid',
  occupancy_pct: 'Occupancy',
  op_name: 'Op',
  is_op_tensor_core_eligible: 'Could use matrix units',
  is_kernel_using_tensor_core: 'Uses matrix units',
  occurrences: 'Count',
  total_duration_us: 'Total time',
  avg_duration_us: 'Avg. time',
  min_duration_us: 'Shortest',
  max_duration_us: 'Longest',
};
const ORDER = [
  'kernel_name', 'total_duration_us', ...DIFFERENCES, 'occurrences', 'avg_duration_us', 'min_duration_us', 'max_duration_us',
  'op_name', 'is_kernel_using_tensor_core', 'occupancy_pct'
];

// How kernels are matched with those of the base.
const BY_KERNEL = {
  kind: 'op_name',
  partners: (both) => partners(both.kernels, 'kernel'),
  name: (table) => {
    const names = column(table, 'kernel_name').values;
    return (r) => kernelName(names[r]);
  }
};

// No kernel occupies nothing: the profile does not say.
const occupancy = (v) => (v > 0 ? `${format.number(v)} %` : '–');

export default {
  title: 'Kernels',
  tool: 'kernel_stats',
  async render(ctx) {
    const answer = await ctx.load('kernel_stats');
    const table = columns(Array.isArray(answer) ? answer[0] : answer);
    ctx.root.append(h('h1', {}, 'Kernels'));
    if (!table.length) {
      ctx.root.append(empty('No GPU kernels in this profile',
          'Kernels are recorded on GPUs only. On TPUs and CPUs see the op profile or the trace instead.'));
      return;
    }
    const name = column(table, 'kernel_name').values, total = column(table, 'total_duration_us').values,
          uses = column(table, 'is_kernel_using_tensor_core');
    const tile = (label, value, note) => h('div', {class: 'tile'}, h('dt', {}, label), h('dd', {}, value),
        note ? h('dd', {class: 'muted small'}, note) : '');
    const sum = total.reduce((a, b) => a + b, 0);
    const tensor = uses ? total.reduce((a, v, i) => a + (uses.values[i] === 'yes' ? v : 0), 0) : 0;
    const shares = column(table, 'occurrences').values.reduce((a, b) => a + b, 0);
    ctx.root.append(h('dl', {class: 'tiles'},
        tile('Time in kernels', format.us(sum), 'summed over all streams'),
        tile('Launches', format.count(shares), `${format.count(table.length)} different kernels and shapes`),
        tile('On matrix units', format.fraction(sum ? tensor / sum : NaN), 'Tensor Cores or matrix cores: share of kernel time')));
    const byName = new Map();
    name.forEach((n, i) => byName.set(n, (byName.get(n) || 0) + total[i]));
    const sorted = [...byName].sort((a, b) => b[1] - a[1]);
    const items = sorted.slice(0, 6).map(
        ([label, value], i) =>
            ({label: format.short(label, 60), value, color: i}));
    const rest = sorted.slice(6).reduce((a, x) => a + x[1], 0);
    if (rest > 0) items.push({label: 'other', value: rest, color: 8});
    const chart = parts({label: 'Kernel time', items, format: format.us});
    if (chart) ctx.root.append(h('section', {class: 'card'}, h('h2', {}, 'Where kernel time goes'), chart));
    const [joined, note] = await joinBase(ctx, 'kernel_stats', {}, table, ['kernel_name', 'block_dim', 'grid_dim'], 'total_duration_us',
        (a) => columns(Array.isArray(a) ? a[0] : a), BY_KERNEL);
    const named = column(joined, 'kernel_name').values;
    const all = withUnits(joined.columns, ctx, 'kernel_stats').map((c) => (c.id === 'occupancy_pct' ? {...c, format: occupancy} : c));
    const cols = withSigns(inOrder(all, ORDER)).map((c) => ({...c, title: c.label, label: LABELS[c.id] || c.label}));
    const side = detail('Kernel');
    const data = new DataTable({
      columns: cols.map((c) => ({
        ...c,
        hidden: c.id === 'rank',
        width: c.id === 'kernel_name' ? 380 : undefined
      })),
      length: joined.length,
      caption: 'Kernels',
      csv: `kernel_stats_${ctx.session.name.replace(/[^\w.-]+/g, '_')}.csv`,
      facetColumns: ['is_kernel_using_tensor_core', 'is_op_tensor_core_eligible', 'where'],
      ...tableState(ctx, sortOf(ctx, 'total_duration_us')),
      onOpen: (row) => side.show(named[row], [
        ...facts(cols, row),
        ['See also', h('a', {href: router.link(ctx.session.name, 'trace', {host: ctx.hosts, q: named[row]})}, 'Trace')]
      ]),
    });
    ctx.root.append(note, h('section', {class: 'card flush'}, data.element), side.element,
        ctx.tools.some((t) => t.name === 'launches') ? launchQueue(ctx) : '');
  },
};
