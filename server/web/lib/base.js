// SPDX-License-Identifier: Apache-2.0
// The base session, which the address names (?base=): how pages show differences to it.

import {h} from './dom.js';
import * as api from './api.js';
import * as format from './format.js';
import * as router from './router.js';
import {signed, times} from './sides.js';

// What /api/v1/compare says, with the base as A and this session as B; null without a base, or where the two cannot be
// compared, which a warning says.
export async function compared(ctx) {
  if (!ctx.base) return null;
  try {
    return (await api.get(api.address('compare', [['a', ctx.base], ['b', ctx.session.name]]), ctx.signal)).data;
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    ctx.warn([`No differences to the base ${ctx.base}: ${e.message}`]);
    return null;
  }
}

// The answer of TOOL for the base, of the hosts that are chosen here; null as above.
export async function answerOf(ctx, tool, options, hosts = ctx.hosts) {
  if (!ctx.base) return null;
  try {
    return (await api.tool(ctx.base, tool, hosts, options, ctx.signal)).data;
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    ctx.warn([`No differences to the base ${ctx.base}: ${e.message}`]);
    return null;
  }
}

// How often this session has what the base has once: the sessions may be of different numbers of steps.
export const scaleOf = (both) => (both?.a.steps && both.b.steps ? both.b.steps / both.a.steps : 1);

// A sentence of which base the page shows, and, with what compared() says, how its totals are made comparable.
export function about(ctx, both) {
  const {a, b} = both || {};
  const how = both === undefined ? '' :
      a?.steps && b.steps ?
      (a.steps === b.steps ? '' : ` Its totals are those of ${format.count(b.steps)} steps, as many as here; it has ${format.count(a.steps)}.`) :
      ' Steps are not known on both sides, so that totals are compared as they are.';
  return h('p', {class: 'muted base-note'}, 'Differences to ', h('a', {href: router.link(ctx.base, ctx.at.page)}, ctx.base), `.${how}`);
}

// Rows by the texts of the columns KEYS, of equal ones the greatest VALUE first.
function byKeys(table, keys, value) {
  const of = (id) => table.columns.find((c) => c.id === id)?.values;
  const texts = keys.map(of), values = of(value), rows = new Map();
  for (let r = 0; r < table.length; r++) {
    const key = JSON.stringify(texts.map((t) => (t ? t[r] : '')));
    if (!rows.has(key)) rows.set(key, []);
    rows.get(key).push(r);
  }
  for (const list of rows.values()) list.sort((x, y) => values[y] - values[x]);
  return {rows, values};
}

/* TABLE (of gviz.js) with columns of how its column VALUE differs from BASE's, times SCALE, and below it the rows that
 * BASE alone has.  Rows with the same texts in the columns KEYS are the same; of several the greatest are. */
export function against(table, base, keys, value, scale) {
  const here = byKeys(table, keys, value), there = byKeys(base, keys, value);
  const of = new Map(), gone = [];  // row here -> row there
  for (const [key, rows] of there.rows) rows.forEach((r, i) => {
    const same = here.rows.get(key)?.[i];
    if (same === undefined)
      gone.push(r);
    else
      of.set(same, r);
  });
  const n = table.length, length = n + gone.length;
  const row = (r) => (r < n ? of.get(r) : gone[r - n]);
  const columns = table.columns.map((c) => {
    const other = base.columns.find((x) => x.id === c.id);
    const extra = gone.map((r) => (c.type === 'number' ? (c.id === value ? 0 : NaN) : other ? other.values[r] : ''));
    return {...c, values: c.type === 'number' ? Float64Array.from([...c.values, ...extra]) : [...c.values, ...extra]};
  });
  const each = (f) => Array.from({length}, (_, r) => f(row(r), r));
  const before = Float64Array.from(each((r) => (r === undefined ? 0 : there.values[r] * scale)));
  const now = columns.find((c) => c.id === value);
  const difference = before.map((v, r) => now.values[r] - v);
  return {
    ...table,
    columns: [
      ...columns,
      {...now, id: 'base', label: 'Base', values: before, of: value},
      {...now, id: 'difference', label: 'Difference', values: difference, of: value},
      {id: 'change', label: 'Of base', type: 'number', values: difference.map((d, r) => (before[r] > 0 ? d / before[r] * 100 : NaN)), unit: '%'},
      {id: 'where', label: 'In', type: 'string', width: 120, values: each((r, i) => (r === undefined ? 'here alone' : i < n ? 'both' : 'base alone'))}
    ],
    length
  };
}

// TABLE of TOOL with its differences to the base, and a sentence about them; TABLE as it is, and '', without a base.
// PART makes such a table of the base's answer.
export async function joinBase(ctx, tool, options, table, keys, value, part) {
  const [both, answer] = await Promise.all([compared(ctx), answerOf(ctx, tool, options)]);
  return answer ? [against(table, part(answer), keys, value, scaleOf(both)), about(ctx, both)] : [table, ''];
}

// COLUMNS of a table that against() made, once they have formats: differences with signs, in the
// unit of their columns.
export function withSigns(columns) {
  return columns.map((c) => {
    if (c.id === 'change') return {...c, format: (v) => (Number.isFinite(v) ? times(v) : '–')};
    const of = c.of && columns.find((x) => x.id === c.of);
    if (!of) return c;
    const show = of.format || format.number;
    return {...c, unit: of.unit, format: c.id === 'difference' ? signed(show) : show};
  });
}

// Ids of those columns, in their order; and the column by which a page with a base is sorted at first.
export const DIFFERENCES = ['base', 'difference', 'change', 'where'];
export const sortOf = (ctx, value) => ({id: ctx.base ? 'difference' : value, down: true});
