// SPDX-License-Identifier: Apache-2.0
// The HLO programs of a session: which there are, the choice of one, and links between the pages that show
// one.

import {h} from './dom.js';
import * as format from './format.js';
import * as router from './router.js';
import {near} from './near.js';
import {empty, way} from './notes.js';

// Programs of all hosts by their labels ("NAME(ID)"), those with the most instructions first.
export async function programs(ctx) {
  const all = new Map();
  for (const m of (await ctx.load('hlo_modules')) || []) {
    const old = all.get(m.module);
    if (!old || m.instructions > old.instructions) all.set(m.module, m);
  }
  return [...all.values()].sort((a, b) => b.instructions - a.instructions || (a.module < b.module ? -1 : 1));
}

// The program that the address names by its label or by its id alone; else the first.
export function chosen(ctx, list) {
  const label = ctx.params.get('module'), id = ctx.params.get('program');
  if (label) return list.find((m) => m.module === label) || null;
  if (id) return list.find((m) => m.program_id === id) || null;
  return list[0] || null;
}

// Why there is no program: none is in the profile, or none has the name of the address; one that is near is linked.
export function missing(ctx, list) {
  const asked = ctx.params.get('module') || ctx.params.get('program') || '';
  const plain = (label) => label.replace(/\(\d+\)$/, '');
  const best = near(asked, list.map((m) => m.module)), other = near(asked, list.map((m) => plain(m.module)));
  const label = best || list.find((m) => plain(m.module) === other)?.module;
  if (!list.length)
    return empty('No HLO programs in this profile',
        'XLA’s profiler records them together with the ops of a device or a CPU.');
  const place = empty('This program is not in the profile', label ? `There is no “${asked}”; did you mean "${label}"?` : 'Choose one above.');
  if (label)
    place.append(way({name: label, href: router.link(ctx.session.name, ctx.at.page, {host: ctx.hosts, module: label})}));
  return place;
}

// A choice among programs.  onChoose(label); none: the text of an entry for no program.
export function choice({list, value, id, label, none, onChoose}) {
  const select = h('select', {id, onchange: () => onChoose(select.value)},
      none ? h('option', {value: ''}, none) : '',
      list.map((m) => h('option', {value: m.module},
          `${m.module}, ${format.count(m.instructions)} instruction${m.instructions === 1 ? '' : 's'}`)));
  select.value = value || '';
  return h('label', {class: 'check'}, `${label} `, select);
}

// An instruction without what tells its buffers apart: "fusion.3{1}" is a buffer of fusion.3.
export const instruction = (name) => name.replace(/\{[^{}]*\}$/, '');

// Links of an op to the pages that show it; program: an id, module: a label, either may be unknown.
export function opLinks(ctx, {program, module, op}, without) {
  const host = ctx.hosts, session = ctx.session.name;
  const links = [
    ['graph', 'Graph', {host, module, program: module ? '' : program, node: op}],
    ['hlo_ops', 'HLO ops', {host, q: op}],
    ['memory_viewer', 'Memory viewer', {host, module, program: module ? '' : program}],
    ['op_profile', 'Op profile', {host, op}],
    ['trace', 'Trace', {host, q: op, in: 'arguments'}],
  ];
  const always = ['hlo_ops', 'op_profile', 'trace'];
  return links.filter(([page, , at]) => page !== without && (always.includes(page) || at.module || at.program))
      .map(([page, text, at], i) => [i ? ', ' : '', h('a', {href: router.link(session, page, at)}, text)]);
}

const NAMED = {lt: '<', gt: '>', quot: '"', amp: '&', '#39': '\''};
const words = (text) => text.replace(/&(lt|gt|quot|amp|#39);/g, (_, e) => NAMED[e]).trim();

// A column of where ops come from, whose cells are HTML for XProf's page, as texts: values are "file:line", all
// has the callers, too.  Other columns stay as they are.
export function plainSource(c) {
  if (c.id !== 'source_info') return c;
  const found = c.values.map((cell) => /^<div [^<>]*?title='([^'<>]*)'[^<>]*>([^<>]*)<\/div>$/.exec(cell));
  return {
    ...c,
    values: found.map((f, i) => (f ? words(f[2]) : c.values[i])),
    all: found.map((f, i) => (f ? words(f[1]) || words(f[2]) : c.values[i]))
  };
}
