// SPDX-License-Identifier: Apache-2.0
// What the daemon says about itself.

import {h} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';

function show(key, value) {
  if (typeof value === 'number') {
    if (/(^|_)bytes(_|$)/.test(key)) return format.bytes(value);
    if (/unix_ns/.test(key)) return format.date(value / 1e6);
    if (/_us$/.test(key)) return format.us(value);
    if (/_ms$/.test(key) && !/unix/.test(key)) return format.ms(value);
    if (/unix_ms/.test(key)) return format.date(value);
    return format.number(value);
  }
  return String(value);
}

const SECTIONS = {
  cache: 'Answers',
  queue: 'Work',
  memory: 'Memory',
  store: 'Store',
  catalogue: 'Log directory',
  rpc: 'Connections',
  history: 'Histories'
};

// The unit is with the value.
const words = (key) => key.replace(/_(unix_ns|unix_ms|ms|us)$/, '').replaceAll('_', ' ');

// What OBJECT has of itself, as one table; '': nothing.
function section(title, object) {
  const own = Object.entries(object).filter(([, v]) => v !== '' && (typeof v !== 'object' || v === null));
  if (!own.length) return '';
  return h('section', {class: 'card flush', 'aria-label': title}, h('h2', {class: 'pad'}, title),
      h('table', {class: 'plain', 'aria-label': `Counters: ${title}`},
          h('tbody', {}, own.map(([k, v]) => h('tr', {}, h('th', {scope: 'row'}, words(k)), h('td', {class: 'num'}, show(k, v)))))));
}

// How requests end, for people.
const ENDS = {
  OK: 'answered',
  CANCELLED: 'cancelled',
  INVALID_ARGUMENT: 'asked wrongly',
  DEADLINE_EXCEEDED: 'took too long',
  NOT_FOUND: 'not there',
  PERMISSION_DENIED: 'not allowed',
  UNAUTHENTICATED: 'not allowed',
  RESOURCE_EXHAUSTED: 'too much work',
  FAILED_PRECONDITION: 'not in such a profile',
  ABORTED: 'still being written',
  UNIMPLEMENTED: 'no such tool',
  UNAVAILABLE: 'not ready, or stopping',
  DATA_LOSS: 'damaged profile',
};

function outcomes(list) {
  if (!list.length) return h('p', {class: 'muted pad'}, 'None yet.');
  const head = (text, numeric) => h('th', {scope: 'col', class: numeric ? 'num' : null}, text);
  const row = (x) => h('tr', {}, h('th', {scope: 'row'}, x.tool), h('td', {}, ENDS[x.code] || 'failed'),
      h('td', {class: 'num'}, format.count(x.count)), h('td', {class: 'num'}, format.us(x.micros / x.count)));
  return h('div', {class: 'scroll-x', role: 'region', tabindex: '0', 'aria-label': 'Table of requests'},
      h('table', {class: 'plain', 'aria-label': 'Requests by tool'},
          h('thead', {}, h('tr', {}, head('Tool'), head('End'), head('Requests', true), head('On average', true))),
          h('tbody', {}, list.map(row))));
}

export default {
  title: 'Server',
  async render(ctx) {
    const {data} = await api.server(ctx.signal);
    ctx.root.append(h('h1', {}, 'Server'),
        h('div', {class: 'sections'}, section('Server', {...data, requests: data.requests?.total}),
            Object.entries(data).map(([k, v]) => (k !== 'requests' && v && typeof v === 'object' ? section(SECTIONS[k] || words(k), v) : ''))),
        h('section', {class: 'card flush'}, h('h2', {class: 'pad'}, 'Requests'), outcomes(data.requests?.outcomes || [])));
  },
};
