// SPDX-License-Identifier: Apache-2.0
// HLO ops: the instructions that ran on the device, their time, rates and texts.

import {h} from '../lib/dom.js';
import * as format from '../lib/format.js';
import {DataTable} from '../lib/table.js';
import {columns, column, inOrder} from '../lib/gviz.js';
import {withoutImpossible, withUnits} from '../lib/units.js';
import {empty} from '../lib/notes.js';
import {parts} from '../lib/chart.js';
import {detail, facts, tableState} from '../lib/detail.js';
import {DIFFERENCES, joinBase, opsBy, sortOf, withSigns} from '../lib/base.js';
import {isCpu, peaks, peaksForm} from '../lib/peaks.js';
import {opLinks, plainSource} from '../lib/programs.js';

const ORDER = [
  'hlo_op_name', 'category', 'program_id', 'occurrences', 'total_self_time', ...DIFFERENCES, 'total_self_time_percent',
  'model_flop_rate', 'measured_memory_bw', 'operational_intensity', 'bound_by', 'tf_op_name'
];
const LABELS = {
  hlo_op_name: 'Op',
  category: 'Category',
  program_id: 'Program',
  occurrences: 'Count',
  total_self_time: 'Self time',
  total_self_time_percent: 'Share',
  model_flop_rate: 'GFLOP/s',
  measured_memory_bw: 'GiB/s',
  operational_intensity: 'FLOP/byte',
  bound_by: 'Bound by',
  tf_op_name: 'Framework op',
};

function whereTimeGoes(table) {
  const category = column(table, 'category').values, self = column(table, 'total_self_time').values;
  const sums = new Map();
  for (let i = 0; i < table.length; i++) sums.set(category[i], (sums.get(category[i]) || 0) + self[i]);
  const sorted = [...sums].sort((a, b) => b[1] - a[1]);
  const items = sorted.slice(0, 8).map(([label, value], i) => ({label: label || '(none)', value, color: i}));
  const rest = sorted.slice(8).reduce((t, x) => t + x[1], 0);
  if (rest > 0) items.push({label: 'other', value: rest, color: 8});
  return parts({label: 'Self time by category', items, format: format.us});
}

export default {
  title: 'HLO ops',
  tool: 'hlo_stats',
  async render(ctx) {
    const answer = await ctx.load('hlo_stats', peaks(ctx));
    const table = withoutImpossible(columns(Array.isArray(answer) ? answer[0] : answer));
    ctx.root.append(h('h1', {}, 'HLO ops'));
    if (!table.length) {
      ctx.root.append(empty('No HLO ops in this profile',
          'The profile has no events of XLA’s ops on a device. The trace shows the recorded events.'));
      return;
    }
    if (isCpu(table)) ctx.root.append(peaksForm(ctx));
    const chart = whereTimeGoes(table);
    if (chart) ctx.root.append(h('section', {class: 'card'}, h('h2', {}, 'Self time by category'), chart));
    const [joined, note] = await joinBase(ctx, 'hlo_stats', peaks(ctx), table, ['hlo_op_name', 'category', 'tf_op_name'], 'total_self_time',
        (a) => withoutImpossible(columns(Array.isArray(a) ? a[0] : a)), opsBy('tf_op_name', 'hlo_op_name', 'category'));
    const cols = withSigns(inOrder(withUnits(joined.columns, ctx, 'hlo_stats').map(plainSource), ORDER));
    const side = detail('Op');
    const name = column(joined, 'hlo_op_name').values, program = column(joined, 'program_id');
    const data = new DataTable({
      columns: cols.map((c) => ({
        ...c,
        title: c.label,
        label: LABELS[c.id] || c.label,
        hidden: !ORDER.includes(c.id),
        bar: false,
        width: c.id === 'hlo_op_name' ? 260 : undefined
      })),
      length: joined.length,
      caption: 'HLO ops',
      csv: `hlo_stats_${ctx.session.name.replace(/[^\w.-]+/g, '_')}.csv`,
      facetColumns: ['category', 'bound_by', 'program_id', 'where'],
      ...tableState(ctx, sortOf(ctx, 'total_self_time')),
      onOpen: (row) => side.show(name[row], [
        ...facts(cols, row),
        ['See also', opLinks(ctx, {program: program ? program.values[row] : '', op: name[row]}, 'hlo_ops')]
      ]),
    });
    ctx.root.append(note, h('section', {class: 'card flush'}, data.element), side.element);
  },
};
