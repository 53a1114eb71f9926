// SPDX-License-Identifier: Apache-2.0
// Units of the numbers in tools' tables: /api/v1/tools lists them by the ids of columns.

import * as format from './format.js';

const FORMATS = {
  ps: format.ps,
  us: format.us,
  ms: format.ms,
  bytes: format.bytes,
  'fraction of 1': format.fraction,
  '%': (x) => format.fraction(x / 100),
};

// The columns of a table of TOOL with formats, and the unit for the header of an export, whose cells are plain
// numbers: "(%)" in the label of a fraction is not true of them.
export function withUnits(columns, ctx, tool) {
  const units = ctx?.tools.find((t) => t.name === tool)?.units || {};
  return columns.map((c) => {
    const unit = c.type === 'number' && (c.unit || units[c.id]);
    if (!FORMATS[unit]) return c;
    const label = c.label.replace(/ *\((us|μs|ms|in ms|%|bytes)\)$/, '');
    return {...c, label, format: FORMATS[unit], unit};
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
