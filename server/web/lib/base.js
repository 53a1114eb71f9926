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
      ' One side has no steps, so totals are compared as they are.';
  return h('p', {class: 'muted base-note'}, 'Differences to ', h('a', {href: router.link(ctx.base, ctx.at.page)}, ctx.base), `.${how}`);
}

// What compare calls ops and kernels (analysis/compare/names.c): rows of tools have names in the form of XProf, by which
// its matches cannot be found. The browser test names_of_compare compares the two.
export const opName = (framework, name) => (framework ? framework.replace(/:$/, '') : name.replace(/^%/, '').replace(/(?<=.)\.\d+$/s, ''));
export const kernelName = (name) => (/fusion|^wrapped_/.test(name) ? name.replace(/(?<=.)_\d+$/s, '') : name);

// The names here of what compare matched with a name of the base. LIST: its ops or kernels, whose names are in KEY.
export function partners(list, key) {
  const of = new Map();
  for (const r of list || []) {
    const was = r.a_name || r[key];
    if (r.state === 'both') of.set(was, [...(of.get(was) || []), r[key]]);
  }
  return (name) => of.get(name) || [];
}

/* Pairs elements of HERE and THERE, both in order, in ROUNDS of two functions: an element of THERE, for which the second
 * one gives texts, is paired with the first free element for which the first one gives such a text.  Returns a map from
 * HERE to THERE, and what is left of THERE. */
export function pairs(here, there, rounds) {
  const of = new Map(), left = new Set(there);
  for (const [textOf, textsOf] of rounds) {
    const free = new Map();
    for (const r of here) {
      if (of.has(r)) continue;
      const text = textOf(r);
      if (!free.has(text)) free.set(text, []);
      free.get(text).push(r);
    }
    for (const r of left) {
      const text = textsOf(r).find((t) => free.get(t)?.length);
      if (text === undefined) continue;
      of.set(free.get(text).shift(), r);
      left.delete(r);
    }
  }
  return [of, [...left]];
}

const valuesOf = (table, id) => table.columns.find((c) => c.id === id)?.values;

// Rows of a table, the greatest VALUE first.
function greatestFirst(table, value) {
  const values = valuesOf(table, value);
  return Array.from({length: table.length}, (_, r) => r).sort((x, y) => values[y] - values[x]);
}

// By what rows are paired: equal texts in the columns KEYS, then a name that compare matched, first of the same kind.
function rounds(table, base, keys, match) {
  const texts = (t, ids) => {
    const columns = ids.map((id) => valuesOf(t, id));
    return (r) => JSON.stringify(columns.map((c) => (c ? c[r] : '')));
  };
  const here = texts(table, keys), there = texts(base, keys), out = [[here, (r) => [there(r)]]];
  if (!match) return out;
  const now = match.name(table), then = match.name(base);
  for (const kind of [[match.kind], []]) {
    const a = texts(table, kind), b = texts(base, kind);
    out.push([(r) => a(r) + now(r), (r) => match.partners(then(r)).map((name) => b(r) + name)]);
  }
  return out;
}

/* TABLE (of gviz.js) with columns of how its column VALUE differs from BASE's, times SCALE, and below it the rows that
 * only BASE has.  Rows with the same texts in the columns KEYS are the same; of several the greatest are.  MATCH: null, or
 * how the others are matched: {name(table) gives names of rows as compare has them, kind: a column, partners}. */
export function against(table, base, keys, value, scale, match = null) {
  const [of, gone] = pairs(greatestFirst(table, value), greatestFirst(base, value), rounds(table, base, keys, match));
  const n = table.length, length = n + gone.length, theirs = valuesOf(base, value);
  const row = (r) => (r < n ? of.get(r) : gone[r - n]);
  const columns = table.columns.map((c) => {
    const other = valuesOf(base, c.id);
    const extra = gone.map((r) => (c.type === 'number' ? (c.id === value ? 0 : NaN) : other ? other[r] : ''));
    return {...c, values: c.type === 'number' ? Float64Array.from([...c.values, ...extra]) : [...c.values, ...extra]};
  });
  const each = (f) => Array.from({length}, (_, r) => f(row(r), r));
  const before = Float64Array.from(each((r) => (r === undefined ? 0 : theirs[r] * scale)));
  const now = columns.find((c) => c.id === value);
  const difference = before.map((v, r) => now.values[r] - v);
  const names = match && [match.name(table), match.name(base)];
  const former = each((r, i) => (names && i < n && r !== undefined && names[0](i) !== names[1](r) ? names[1](r) : ''));
  return {
    ...table,
    columns: [
      ...columns,
      {...now, id: 'base', label: 'Base', values: before, of: value},
      {...now, id: 'difference', label: 'Difference', values: difference, of: value},
      {id: 'change', label: 'Of base', type: 'number', values: difference.map((d, r) => (before[r] > 0 ? d / before[r] * 100 : NaN)), unit: '%'},
      {id: 'where', label: 'In', type: 'string', width: 120, values: each((r, i) => (
        r === undefined ? 'only here' : i >= n ? 'only the base' : former[i] ? 'both, renamed' : 'both'))},
      ...(former.some((name) => name) ? [{id: 'former', label: 'Name in the base', type: 'string', values: former}] : [])
    ],
    length
  };
}

// How ops are matched whose framework op is in the column FRAMEWORK and whose name is in NAME.
export const opsBy = (framework, name, kind) => ({
  kind,
  partners: (both) => partners(both.ops, 'op'),
  name: (table) => {
    const ops = valuesOf(table, framework), names = valuesOf(table, name);
    return (r) => opName(ops[r], names[r]);
  }
});

// TABLE of TOOL with its differences to the base, and a sentence about them; TABLE as it is, and '', without a base.
// PART makes such a table of the base's answer.  MATCH is as of against(); its partners(both) takes what compared() says.
export async function joinBase(ctx, tool, options, table, keys, value, part, match) {
  const [both, answer] = await Promise.all([compared(ctx), answerOf(ctx, tool, options)]);
  if (!answer) return [table, ''];
  const matched = both && {...match, partners: match.partners(both)};
  return [against(table, part(answer), keys, value, scaleOf(both), matched), about(ctx, both)];
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
export const DIFFERENCES = ['base', 'difference', 'change', 'where', 'former'];
export const sortOf = (ctx, value) => ({id: ctx.base ? 'difference' : value, down: true});
