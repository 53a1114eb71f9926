// SPDX-License-Identifier: Apache-2.0
// All sessions: when, which hosts and devices, how long their steps last, what limits them.  What is known of a
// session without converting it is shown as soon as its row is in sight.

import {h, s, announce, breaking, debounce} from '../lib/dom.js';
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

const AT_ONCE = 2;         // sessions that are asked about at the same time
const LEAST_OF_LABEL = 3;  // points of a spark line
const mostFacts = new Map();  // session name -> {bytes, facts}: kept while the page of another session is shown

// ---- what a session's answers say ----

// Device, mean of the slowest host's steps, and verdict; of a session that is converted these are fast.
async function askFacts(session, signal) {
  const ask = (tool, options) => api.tool(session.name, tool, [], options, signal).then((x) => x.data);
  const [found, times] = await Promise.all([ask('findings'), ask('time_breakdown', {view: 'steps'})]);
  const hosts = times.hosts || [];
  const kinds = [...new Set(hosts.flatMap((x) => (x.devices || []).map((d) => d.kind.toUpperCase())))];
  const walls = hosts.map((x) => x.steps?.wall_ps || []).filter((x) => x.length);
  const total = (list) => list.reduce((a, b) => a + b, 0);
  const slowest = walls.reduce((a, b) => (total(b) > total(a) ? b : a), []);
  const [first] = found.findings;
  return {
    device: kinds.length ? `${found.devices} ${kinds.join(', ')}` : '–',
    step: slowest.length ? total(slowest) / slowest.length : NaN,
    verdict: first ? `${first.title} ${format.fraction(first.share_percent / 100)}` :
        found.devices ? 'nothing stands out' : 'no device',
    text: found.verdict.text
  };
}

// A line of VALUES, the last one marked.
function spark(values, title) {
  const width = 84, height = 20, least = Math.min(...values), room = Math.max(...values) - least || 1;
  const at = (v, i) => [2 + i * (width - 4) / Math.max(1, values.length - 1), height - 3 - (v - least) / room * (height - 6)];
  const points = values.map((v, i) => at(v, i).map((x) => x.toFixed(1)).join(' '));
  const [x, y] = at(values[values.length - 1], values.length - 1);
  return s('svg', {class: 'spark', width, height, role: 'img', 'aria-label': title},
      s('title', {}, title), s('path', {d: `M${points.join('L')}`}), s('circle', {cx: x, cy: y, r: 2}));
}

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
  return h('span', {class: 'error-text', title: lines.join('\n')}, `${format.few(list.map((x) => x.name))}: ${whys.join('; ')}`);
}

function links(session) {
  const link = (page, text) =>
      h('a', {href: router.link(session.name, page), 'aria-label': `${text} of ${session.name}`}, text);
  return [session.report ? [link(`tool:${session.report}`, 'Report'), ' '] : '', link('trace', 'Trace')];
}

function row(session, ticks) {
  const now = state(session);
  const names = session.hosts.map((x) => x.name);
  const wrong = problems(session);
  const tick = h('input', {
    type: 'checkbox',
    checked: ticks.chosen.has(session.name),
    'aria-label': `Compare ${session.name}`,
    onchange: (e) => ticks.change(session.name, e.target.checked)
  });
  return h('tr', {'data-session': session.name},
      h('td', {class: 'tick-cell'}, tick),
      h('th', {scope: 'row'}, h('a', {href: router.link(session.name, 'overview')}, breaking(session.name)),
          wrong.length ? problem(wrong) : ''),
      h('td', {class: 'device minor'}, session.report ? session.title : '–'), h('td', {class: 'num step'}, '–'), h('td', {class: 'says'}, '–'),
      h('td', {class: 'when', title: format.ago(session.captured_unix_ms)}, format.date(session.captured_unix_ms), ' ',
          h('span', {class: 'muted ago'}, format.ago(session.captured_unix_ms))),
      h('td', {class: 'minor', title: names.slice(0, 50).join('\n')},
          names.length === 1 ? names[0] : `${names.length} hosts`),
      h('td', {class: 'num minor'}, format.bytes(session.bytes)),
      h('td', {}, now.name === 'stored' ? '' : h('span', {class: `state state-${now.name}`}, now.text)),
      h('td', {class: 'go'}, links(session)));
}

const SORTS = {
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
    const chosen = new Set();
    const pair = h('a', {class: 'button', hidden: true}, 'Compare the two');
    const withBase = h('a', {class: 'button', hidden: true}, 'Open the newer, the older as its base');
    const ticks = {
      chosen,
      change: (name, on) => {
        if (on)
          chosen.add(name);
        else
          chosen.delete(name);
        const [a, b] = chosen;
        pair.hidden = withBase.hidden = chosen.size !== 2;
        pair.setAttribute('href', router.link(null, 'compare', {a, b}));
        if (!withBase.hidden) {
          const [older, newer] = list.filter((x) => chosen.has(x.name)).sort((x, y) => x.captured_unix_ms - y.captured_unix_ms || SORTS.name(x, y));
          withBase.setAttribute('href', router.link(newer.name, 'overview', {base: older.name}));
        }
        announce(chosen.size === 2 ? `${a} and ${b} can be compared` : `${chosen.size} chosen`);
      }
    };
    // Rows that come into sight wait for their facts; those that leave it no longer do.
    const waiting = new Map();
    let asking = 0;
    const fill = (tr, facts) => {
      tr.querySelector('.device').textContent = facts.device;
      tr.querySelector('.step').replaceChildren(Number.isFinite(facts.step) ? format.ps(facts.step) : '–');
      const says = tr.querySelector('.says');
      says.textContent = facts.verdict;
      says.title = facts.text;
      drawSpark(tr);
    };
    const next = async () => {
      const [tr, session] = waiting.entries().next().value || [];
      if (!tr || asking >= AT_ONCE || ctx.signal.aborted) return;
      waiting.delete(tr);
      asking++;
      try {
        const old = mostFacts.get(session.name);
        const facts = old?.bytes === session.bytes ? old.facts : await askFacts(session, ctx.signal);
        mostFacts.set(session.name, {bytes: session.bytes, facts});
        fill(tr, facts);
      } catch { /* the page of the session says what is wrong */
      }
      asking--;
      next();
    };
    const sight = new IntersectionObserver((entries) => {
      for (const {target, isIntersecting} of entries) {
        const session = list.find((x) => x.name === target.dataset.session);
        if (!isIntersecting)
          waiting.delete(target);
        else if (session && !session.report && session.hosts.length && session.hosts.every((x) => x.state === 'stored'))
          waiting.set(target, session);
      }
      for (let i = 0; i < AT_ONCE; i++) next();
    });
    ctx.signal.addEventListener('abort', () => sight.disconnect());
    // The history of a session's first label, once for each label.
    const histories = new Map();
    const drawSpark = async (tr) => {
      const label = list.find((x) => x.name === tr.dataset.session)?.labels?.[0];
      const of = label ? list.filter((x) => x.labels?.includes(label)) : [];
      if (of.length < LEAST_OF_LABEL || of.some((x) => state(x).name !== 'stored')) return;
      if (!histories.has(label))
        histories.set(label, api.get(api.address('history', [['label', label], ['metric', 'step_time'], ['last', '30']]), ctx.signal).catch(() => null));
      const answer = await histories.get(label);
      const points = answer?.data.metrics?.[0]?.points || [];
      const upTo = points.findIndex((p) => p.session === tr.dataset.session) + 1;
      const values = points.slice(0, upTo || points.length).map((p) => p.value).filter(Number.isFinite);
      if (values.length > 1) tr.querySelector('.step').prepend(spark(values, `Step time of ${values.length} sessions with the label ${label}`), ' ');
    };
    const draw = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const match = (s) => words.every(
          (w) => s.name.toLowerCase().includes(w) || s.hosts.some((x) => x.name.toLowerCase().includes(w)));
      sight.disconnect();
      const rows = list.filter(match).sort((a, b) => (down ? -1 : 1) * SORTS[by](a, b) || SORTS.name(a, b));
      const plain = (label, cls) => h('th', {scope: 'col', class: cls}, label);
      heads.replaceChildren(plain(h('span', {class: 'sr'}, 'Compare')), head('name', 'Session'), plain('Device', 'minor'), plain('Step', 'num'), plain('Limited by'), head('captured', 'Captured'), head('hosts', 'Hosts', 'minor'),
          head('size', 'Size', 'num minor'), head('state', 'State'), plain('Open'));
      body.replaceChildren(...rows.slice(0, all ? Infinity : MOST).map((x) => row(x, ticks)));
      for (const tr of body.children) sight.observe(tr);
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
      ctx.root.append(h('div', {class: 'bar'}, input, counter, h('span', {class: 'grow'}), withBase, pair),
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
