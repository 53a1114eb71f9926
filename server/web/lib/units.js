// SPDX-License-Identifier: Apache-2.0
// What the numbers of a column are, in the tables of tools' answers: ids and labels say so, each table in
// its own way (cli/data_table.c and analysis/tools/lib/columns.c have the same rules).

import * as format from './format.js';

const FRACTIONS = new Set([
  'device_total_self_time_percent', 'device_cumulative_total_self_time_percent', 'host_total_self_time_percent',
  'Host_cumulative_total_self_time_percent', 'gpu_tensorcore_utilization', 'selfTimePercent',
  'cumulativeTimePercent', 'total_time_in_percentage', 'roofline_efficiency', 'compute_efficiency',
  'max_mem_bw_utilization', 'timeInPercent', 'selfTimeInPercent'
]);
const PERCENTS = new Set(['infeedPercentAverage', 'infeedPercentMin', 'infeedPercentMax', 'occupancy_pct', 'share_percent']);
const EITHER = new Set(['total_self_time_percent', 'cumulative_total_self_time_percent']);

const UNITS = {
  ps: {format: format.ps, name: 'ps'},
  us: {format: format.us, name: 'us'},
  ms: {format: format.ms, name: 'ms'},
  bytes: {format: format.bytes, name: 'bytes'},
  fraction: {format: format.fraction, name: 'fraction of 1'},
  percent: {format: (x) => format.fraction(x / 100), name: '%'},
};

function unitOf({id, label}, ofSteps) {
  if (/\((us|μs)\)/.test(label) || /_us$/.test(id)) return UNITS.us;
  if (/\((in )?ms\)/.test(label) || /TimeMs$/.test(id)) return UNITS.ms;
  if (/_ps$/.test(id)) return UNITS.ps;
  if (/_bytes$/.test(id)) return UNITS.bytes;
  if (FRACTIONS.has(id)) return UNITS.fraction;
  if (PERCENTS.has(id)) return UNITS.percent;
  if (EITHER.has(id)) return ofSteps ? UNITS.fraction : UNITS.percent;
  return null;
}

// The columns of a table with formats, and the unit for the header of an export where the label does not
// have it: "Total time (us)" does, and "(%)" of a fraction is not true of the exported number.
export function withUnits(columns) {
  const ofSteps = columns.some((c) => c.id === 'step');
  return columns.map((c) => {
    const unit = c.type === 'number' ? unitOf(c, ofSteps) : null;
    if (!unit) return c;
    const label = c.label.replace(/ *\((us|μs|ms|in ms|%|bytes)\)$/, '');
    return {...c, label, format: unit.format, unit: unit.name};
  });
}

// A table of ops without rates that no device has (NaN: shown as '–'): those of ops that only start their work, and
// bandwidths above the highest peak of the table's.  xplanectl summary has the same rule.
export function withoutImpossible(table) {
  const name = table.columns.find((c) => c.id === 'operation' || c.id === 'hlo_op_name');
  const peak = Math.max(0, ...Object.entries(table.props).filter(([k]) => /^peak_.*_bw$/.test(k)).map(([, v]) => Number(v) || 0));
  const fits = (c, v, row) => !/-start(\.\d+)?$/.test(name.values[row]) && !(peak > 0 && /_bw$/.test(c.id) && v > peak);
  const rate = (c) => name && c.type === 'number' && /_(bw|flop_rate)$/.test(c.id) && c.id !== 'optimal_flop_rate';
  return {...table, columns: table.columns.map((c) => (rate(c) ? {...c, values: c.values.map((v, row) => (fits(c, v, row) ? v : NaN))} : c))};
}
