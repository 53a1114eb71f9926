// SPDX-License-Identifier: Apache-2.0
// What to say when something is missing, wrong or slow.

import {h} from './dom.js';
import {advice} from './api.js';

export function loading(text) {
  return h('p', {class: 'loading pad', role: 'status'}, h('span', {class: 'spinner', 'aria-hidden': 'true'}),
      text || 'Loading …');
}

// The link to ELSEWHERE, {name, href} or null: where the reader may have wanted to go.
export function way(elsewhere) {
  return elsewhere ? h('p', {}, 'Go to ', h('a', {class: 'meant', href: elsewhere.href}, elsewhere.name)) : '';
}

// Why a page has no answer; ELSEWHERE as above.
export function problem(title, error, again, elsewhere) {
  const known = typeof error.code === 'string' && typeof error.status === 'number';
  return h('section', {class: 'problem card', role: 'alert'}, h('h1', {}, error.code === 'NO_PAGE' ? title : `${title}: no answer`),
      h('p', {class: 'message'}, known ? error.message : `This page failed: ${error.message}`),
      known && advice(error) ? h('p', {class: 'muted'}, advice(error)) : '',
      way(elsewhere), h('p', {}, again ? h('button', {type: 'button', onclick: again}, 'Try again') : '', ' ',
          h('a', {href: '#/sessions'}, 'All sessions')));
}

// Adds warnings to BOX, each once.
export function notes(box, list) {
  for (const text of list || []) {
    if ([...box.children].some((c) => c.dataset.text === text)) continue;
    box.append(h('p', {class: 'note', 'data-text': text}, h('strong', {}, 'Warning: '), text));
  }
}

// Why a part of a page has no answer; ELSEWHERE as above.
export function refusal(error, elsewhere) {
  return h('section', {class: 'problem card', role: 'alert'}, h('p', {class: 'message'}, error.message),
      h('p', {class: 'muted'}, advice(error)), way(elsewhere));
}

// An empty state: what is not there, and what to do about it.
export function empty(what, ...todo) {
  return h('section', {class: 'empty card'}, h('h2', {}, what), todo.map((t) => h('p', {class: 'muted'}, t)));
}

// Diagnostics table of a tool ({severity, message} rows) as a list.
export function diagnostics(table) {
  if (!table || !table.length) return null;
  const severity = table.columns.find((c) => c.id === 'severity'),
        message = table.columns.find((c) => c.id === 'message');
  if (!severity || !message) return null;
  return h('section', {class: 'card diagnostics', 'aria-label': 'Diagnostics'}, h('h2', {}, 'Diagnostics'),
      h('ul', {},
          message.values.map(
              (m, i) =>
                  h('li', {class: `severity-${severity.values[i].toLowerCase().replace(/[^a-z]/g, '')}`},
                      h('strong', {}, severity.values[i].toLowerCase()), ' ', m))));
}
