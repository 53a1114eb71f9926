// SPDX-License-Identifier: Apache-2.0
// What many table pages share: the panel with one row in full, and the table's state in the address.

import {h} from './dom.js';
import * as format from './format.js';

// Long texts scroll: makes those below ROOT, which is in the document, reachable by keys.
export function reach(root) {
  for (const text of root.querySelectorAll('.breakable'))
    if (text.scrollHeight > text.clientHeight) text.tabIndex = 0;
}

// [label, text] of each column in ROW, in full where the table has it shortened, for a detail's show().
export function facts(columns, row) {
  return columns.map((c) => [c.label, c.all ? c.all[row] : c.format ? c.format(c.values[row]) : c.values[row]]);
}

export function detail(what) {
  const body = h('div', {});
  const element = h(
      'section', {class: 'card detail', 'aria-label': `${what} in full`, hidden: true, tabindex: '-1'}, body);
  return {
    element,
    show(title, facts) {
      element.hidden = false;
      body.replaceChildren(h('div', {class: 'title'}, h('h2', {class: 'breakable'}, title || '(no name)'),
                               h('button', {
                                 type: 'button',
                                 'aria-label': 'Close',
                                 onclick: () => {
                                   element.hidden = true;
                                 }
                               },
                                   '✕')),
          h('dl', {class: 'facts wide'},
              facts.map(
                  ([k, v]) => [h('dt', {}, k),
                      h('dd', {class: 'breakable'}, typeof v === 'number' ? format.number(v) : v || '–')])));
      reach(body);
      element.scrollIntoView({block: 'nearest'});
    },
  };
}

// DataTable options that read and write sort, q and facets of the address.
export function tableState(ctx, sort) {
  const text = ctx.params.get('sort');
  const facets = {};
  for (const [k, v] of ctx.params)
    if (k.startsWith('f.')) facets[k.slice(2)] = v;
  return {
    sort: text ? {id: text.replace(/^-/, ''), down: text.startsWith('-')} : sort,
    search: ctx.params.get('q') || '',
    facets,
    onState: (s) => {
      const changes = {sort: s.sort ? `${s.sort.down ? '-' : ''}${s.sort.id}` : '', q: s.search};
      for (const [k, v] of Object.entries(s.facets)) changes[`f.${k}`] = v;
      ctx.update(changes);
    },
  };
}
