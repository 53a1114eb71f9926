// SPDX-License-Identifier: Apache-2.0
// What the daemon says about itself.

import {h} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';

function show(key, value) {
  if (typeof value === 'number') {
    if (/(^|_)bytes(_|$)/.test(key)) return format.bytes(value);
    if (/unix_ns/.test(key)) return format.date(value / 1e6);
    if (/_us$|micros/.test(key)) return format.us(value);
    if (/_ms$/.test(key) && !/unix/.test(key)) return format.ms(value);
    if (/unix_ms/.test(key)) return format.date(value);
    return format.number(value);
  }
  return String(value);
}

function rows(prefix, object, out) {
  for (const [key, value] of Object.entries(object || {})) {
    if (value && typeof value === 'object')
      rows(`${prefix}${key} `, value, out);
    else
      out.push(h('tr', {}, h('th', {scope: 'row'}, `${prefix}${key}`.replaceAll('_', ' ')),
          h('td', {class: 'num'}, show(key, value))));
  }
  return out;
}

export default {
  title: 'Server',
  async render(ctx) {
    const {data} = await api.server(ctx.signal);
    ctx.root.append(h('h1', {}, 'Server'),
        h('div', {class: 'card flush'},
            h('table', {class: 'plain narrow', 'aria-label': 'Counters of the server'},
                h('tbody', {}, rows('', data, [])))));
  },
};
