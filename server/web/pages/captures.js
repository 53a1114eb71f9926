// SPDX-License-Identifier: Apache-2.0
// Captures: one of running programs at the press of a button, those that were made, and the schedules.

import {h, announce} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import * as router from '../lib/router.js';

const AGAIN = 3000;  // ms between two looks at what runs
const LONGEST_S = 600;

const head = (label, cls) => h('th', {scope: 'col', class: cls}, label);
const none = (text) => h('p', {class: 'muted pad'}, text);

// What the capture says, or, of one that has a session all the same, which hosts gave no profile.
function wrong(c) {
  const lost = c.lost.map((x) => `${x.target}: ${x.reason || 'no profile'}`), others = c.lost_hosts - lost.length;
  return c.message || lost.join('; ') + (others ? `; and ${format.count(others)} more` : '');
}

function captures(list) {
  if (!list.length) return none('None yet.');
  const row = (c) => h('tr', {}, h('td', {class: 'when'}, format.date(c.begin_unix_ms)),
      h('td', {class: 'num when'}, c.end_unix_ms ? format.ms(c.end_unix_ms - c.begin_unix_ms) : '–'),
      h('td', {}, h('span', {class: `state state-${c.state === 'failed' ? 'broken' : c.state}`}, c.state)),
      h('td', {}, c.session && /^(done|partial)$/.test(c.state) ?
          h('a', {href: router.link(c.session, 'overview')}, c.session) : c.session || '–'),
      h('td', {class: 'num'}, format.count(c.hosts)), h('td', {class: 'num'}, c.schedule_id || '–'),
      h('td', {class: 'breakable why'}, wrong(c)));
  return h('table', {class: 'plain', 'aria-label': 'Captures'},
      h('thead', {}, h('tr', {}, head('Begin'), head('Took', 'num'), head('State'), head('Session'), head('Hosts', 'num'),
          head('Schedule', 'num'), head('What went wrong'))),
      h('tbody', {}, list.map(row)));
}

function schedules(list) {
  if (!list.length) return none('None. xplanectl capture --every makes one.');
  const row = (s) => h('tr', {}, h('td', {class: 'num'}, String(s.id)), h('td', {class: 'breakable'}, s.targets.join(', ')),
      h('td', {class: 'num'}, format.ms(s.every_ms)), h('td', {}, s.continuous ? 'records all the time' : 'captures'),
      h('td', {class: 'when'}, format.date(s.next_unix_ms)),
      h('td', {class: 'num'}, h('a', {href: router.link(null, 'history', {schedule: s.id})}, format.count(s.sessions))),
      h('td', {class: 'num'}, format.bytes(s.bytes)));
  return h('table', {class: 'plain', 'aria-label': 'Schedules'},
      h('thead', {}, h('tr', {}, head('Schedule', 'num'), head('Programs'), head('Every', 'num'), head('How'), head('Next'),
          head('Sessions', 'num'), head('Size', 'num'))),
      h('tbody', {}, list.map(row)));
}

// The form; started() is called when a capture began or ended.
function form(ctx, enabled, changed) {
  const targets = h('input', {type: 'text', name: 'targets', required: true, size: '34', spellcheck: 'false',
    placeholder: 'localhost:9012, host2:9012', value: ctx.params.get('targets') || ''});
  const seconds = h('input', {type: 'number', name: 'seconds', min: '0.1', max: String(LONGEST_S), step: 'any', value: '2'});
  const name = h('input', {type: 'text', name: 'session', size: '16', spellcheck: 'false', placeholder: 'the time', pattern: '[A-Za-z0-9_+=@][A-Za-z0-9._+=@\\-]*',
    title: 'Letters, digits and . _ - + = @'});
  const python = h('select', {name: 'python'}, h('option', {value: '0'}, 'not recorded'), h('option', {value: '1'}, 'recorded, slower'));
  const done = h('progress', {hidden: true, max: '1', 'aria-label': 'Progress of the capture'});
  const button = h('button', {type: 'submit', disabled: !enabled}, 'Capture');
  const said = h('p', {class: 'muted said', role: 'status'},
      enabled ? 'The programs have to run a profiler server.' : 'This server does not capture (--capture false).');
  const submit = async (e) => {
    e.preventDefault();
    button.disabled = true;
    said.textContent = 'Capturing …';
    said.classList.remove('failed');
    const begin = performance.now(), whole = Number(seconds.value) * 1000;
    done.hidden = false;
    // After the capture the files are fetched, which takes an unknown time.
    const tick = setInterval(() => {
      const part = (performance.now() - begin) / whole;
      if (part < 1)
        done.value = part;
      else
        done.removeAttribute('value');
    }, 100);
    ctx.update({targets: targets.value});
    const query = [['service_addr', targets.value], ['duration', String(Math.round(whole))], ['python_tracer_level', python.value], ['session', name.value]];
    try {
      const running = api.capture(query, ctx.signal);
      setTimeout(changed, 300);
      said.textContent = await running;
    } catch (error) {
      if (error.name === 'AbortError') return;
      said.textContent = error.message;
      said.classList.add('failed');
    } finally {
      clearInterval(tick);
      done.hidden = true;
    }
    announce(said.textContent);
    button.disabled = false;
    changed();
  };
  return h('form', {class: 'card', onsubmit: submit}, h('h2', {}, 'Capture running programs'),
      h('div', {class: 'bar'}, h('label', {class: 'check'}, 'Programs ', targets), h('label', {class: 'check'}, 'Seconds ', seconds),
          h('label', {class: 'check'}, 'Python calls ', python),
          h('label', {class: 'check'}, 'Session ', name), button),
      said, done);
}

export default {
  title: 'Captures',
  async render(ctx) {
    const {data} = await api.captures(ctx.signal);
    const made = h('div', {class: 'scroll-x', role: 'region', tabindex: '0', 'aria-label': 'Table of captures'});
    const planned = h('div', {class: 'scroll-x', role: 'region', tabindex: '0', 'aria-label': 'Table of schedules'});
    const show = (answer) => {
      made.replaceChildren(captures(answer.captures));
      planned.replaceChildren(schedules(answer.schedules));
    };
    const again = async () => {
      try {
        if (!ctx.signal.aborted && !document.hidden) show((await api.captures(ctx.signal)).data);
      } catch { /* shown when the reader asks for something */
      }
    };
    show(data);
    ctx.root.append(h('h1', {}, 'Captures'), form(ctx, data.enabled, again),
        h('section', {class: 'card flush'}, h('h2', {class: 'pad'}, 'Captures'), made),
        h('section', {class: 'card flush'}, h('h2', {class: 'pad'}, 'Schedules'), planned));
    const timer = setInterval(again, AGAIN);
    ctx.signal.addEventListener('abort', () => clearInterval(timer));
  },
};
