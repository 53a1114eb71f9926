// SPDX-License-Identifier: Apache-2.0
// All sessions: when, which hosts, how large, in which state.

import {h, debounce} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import * as router from '../lib/router.js';
import {empty} from '../lib/notes.js';

const MOST = 500;     // rows drawn before the reader asks for all
const AGAIN = 10000;  // ms between scans for new sessions
const STATES = {
  new: 'not converted yet',
  converting: 'converting',
  stored: 'ready',
  broken: 'damaged',
};

const KINDS = {
  xspace: 'XSpace',
  iree: 'IREE'
};

function state(session) {
  const states = session.hosts.map((x) => x.state);
  const lost = session.lost.length;
  if (lost && !states.includes('broken') && !states.includes('converting'))
    return {name: 'partial', text: `Partial (${lost} ${lost === 1 ? 'host' : 'hosts'} lost)`};
  for (const worst of ['broken', 'converting', 'new']) {
    const n = states.filter((x) => x === worst).length;
    if (n)
      return {
        name: worst,
        text: n === states.length ? STATES[worst] : `${STATES[worst]} (${n} of ${states.length})`
      };
  }
  return {name: 'stored', text: STATES.stored};
}

// Hosts that are damaged, and those that the capture lost, with the reason.
function problems(session) {
  const damaged = session.hosts.filter((x) => x.error).map((x) => ({name: x.name, why: x.error}));
  return damaged.concat(session.lost.map((x) => ({name: x.target, why: x.reason || 'no profile'})));
}

function problem(list) {
  const lines = list.map((x) => `${x.name}: ${x.why}`);
  const whys = [...new Set(list.map((x) => x.why))];
  return h('span', {class: 'error-text', title: lines.join('\n')}, ` ${format.few(list.map((x) => x.name))}: ${whys.join('; ')}`);
}

function links(session) {
  const link = (page, text) =>
      h('a', {href: router.link(session.name, page), 'aria-label': `${text} of ${session.name}`}, text);
  return [session.kind === 'iree' ? [link('tool:iree_explain', 'Report'), ' '] : '', link('trace', 'Trace'), ' ', link('op_profile', 'Op profile')];
}

function row(session) {
  const now = state(session);
  const names = session.hosts.map((x) => x.name);
  const wrong = problems(session);
  return h('tr', {},
      h('th', {scope: 'row'}, h('a', {href: router.link(session.name, 'overview')}, session.name)),
      h('td', {}, KINDS[session.kind] || session.kind),
      h('td', {class: 'when', title: format.ago(session.captured_unix_ms)}, format.date(session.captured_unix_ms), ' ',
          h('span', {class: 'muted ago'}, format.ago(session.captured_unix_ms))),
      h('td', {title: names.slice(0, 50).join('\n')},
          names.length === 1 ? names[0] : `${names.length} hosts`),
      h('td', {class: 'num'}, format.bytes(session.bytes)),
      h('td', {}, h('span', {class: `state state-${now.name}`}, now.text),
          wrong.length ? problem(wrong) : ''),
      h('td', {class: 'go'}, links(session)));
}

const SORTS = {
  kind: (a, b) => a.kind.localeCompare(b.kind, 'en'),
  name: (a, b) => a.name.localeCompare(b.name, 'en', {numeric: true}),
  captured: (a, b) => a.captured_unix_ms - b.captured_unix_ms,
  hosts: (a, b) => a.hosts.length - b.hosts.length,
  size: (a, b) => a.bytes - b.bytes,
  state: (a, b) => state(a).text.localeCompare(state(b).text),
};

export default {
  title: 'Sessions',
  async render(ctx) {
    let list = (await api.sessions(ctx.signal)).data.sessions || [];
    let [by, down] = (ctx.params.get('sort') || '-captured')
                         .replace(/^-/, '-,')
                         .split(',')
                         .reverse()
                         .concat('')
                         .slice(0, 2);
    if (!SORTS[by]) [by, down] = ['captured', '-'];
    const input = h('input', {
      type: 'search',
      value: ctx.params.get('q') || '',
      placeholder: 'Search sessions and hosts',
      'aria-label': 'Search sessions and hosts',
      spellcheck: 'false',
      autocomplete: 'off',
      oninput: debounce(80,
          () => {
            ctx.update({q: input.value});
            draw();
          }),
    });
    const counter = h('span', {class: 'muted counter', role: 'status'});
    const body = h('tbody', {});
    const heads = h('tr', {});
    const none = h('p', {class: 'muted pad'});
    let all = false;
    const more = h('button', {
      type: 'button',
      hidden: true,
      onclick: () => {
        all = true;
        draw();
      }
    });
    const table =
        h('table', {class: 'plain sessions', 'aria-label': 'Sessions'}, h('thead', {}, heads), body);
    const order = (key) => {
      down = by === key ? (down ? '' : '-') : key === 'name' || key === 'state' ? '' : '-';
      by = key;
      ctx.update({sort: `${down}${by}`});
      draw();
      heads.querySelector(`[data-column="${key}"] button`).focus();
    };
    const head = (key, label, cls) => h('th', {
      scope: 'col',
      class: cls,
      'data-column': key,
      'aria-sort': by === key ? (down ? 'descending' : 'ascending') : 'none'
    },
        h('button', {type: 'button', onclick: () => order(key)}, h('span', {}, label),
            h('span', {class: 'arrow', 'aria-hidden': 'true'}, by === key ? (down ? '▼' : '▲') : '')));
    const draw = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const match = (s) => words.every(
          (w) => s.name.toLowerCase().includes(w) || s.hosts.some((x) => x.name.toLowerCase().includes(w)));
      const rows = list.filter(match).sort((a, b) => (down ? -1 : 1) * SORTS[by](a, b) || SORTS.name(a, b));
      heads.replaceChildren(head('name', 'Session'), head('kind', 'Kind'), head('captured', 'Captured'), head('hosts', 'Hosts'),
          head('size', 'Size', 'num'), head('state', 'State'), h('th', {scope: 'col'}, 'Open'));
      body.replaceChildren(...rows.slice(0, all ? Infinity : MOST).map(row));
      more.hidden = all || rows.length <= MOST;
      more.textContent = `Show all ${format.count(rows.length)}`;
      counter.textContent = rows.length === list.length ?
          `${format.count(list.length)} session${list.length === 1 ? '' : 's'}` :
          `${rows.length} of ${list.length} sessions`;
      none.textContent = rows.length ? '' : 'No session matches. Change or clear the search.';
      none.hidden = rows.length > 0;
    };
    ctx.root.append(h('h1', {}, 'Sessions'));
    if (!list.length) {
      ctx.root.append(empty('No profiles here yet',
          'The server searches for *.xplane.pb files below its --logdir and shows new ones within a second or two.',
          'From JAX: jax.profiler.trace("LOGDIR"); from TensorFlow: tf.profiler.experimental.start("LOGDIR"). Or copy plugins/profile/RUN/ there.'));
    } else {
      ctx.root.append(h('div', {class: 'bar'}, input, counter),
          h('div', {class: 'card flush scroll-x'}, table, none), more);
      draw();
    }
    const timer = setInterval(async () => {
      if (document.hidden) return;
      try {
        const next = (await api.sessions(ctx.signal)).data.sessions || [];
        if (JSON.stringify(next) === JSON.stringify(list)) return;
        const wasEmpty = !list.length;
        list = next;
        if (wasEmpty)
          dispatchEvent(new Event('hashchange'));
        else
          draw();
      } catch { /* shown when the reader asks for something */
      }
    }, AGAIN);
    ctx.signal.addEventListener('abort', () => clearInterval(timer));
  },
};
