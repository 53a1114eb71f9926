// SPDX-License-Identifier: Apache-2.0
// The trace view: loads trace_viewer@ window by window and keeps the address up to date.

import {h, debounce, every, announce} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import {empty, problem, loading} from '../lib/notes.js';
import {TraceView} from '../trace/view.js';
import {TOOLS} from '../trace/tools.js';
import {TOOL, eventPanel, exactSums, inArguments, rangePanel} from './trace_panels.js';
import {toPerfetto} from './perfetto.js';

const RESOLUTION = 8000;  // columns asked for over the whole trace
const MOST_MATCHES = 100000;
const REST_MS = 500;  // a zoom that rests so long is one that Back returns to
const WHOLE = 20000;  // answers with fewer events than this were hardly thinned out
const KEYS = [
  ['W / S, wheel', 'zoom in and out at the pointer'], ['A / D, Shift + wheel, drag', 'move left and right'],
  ['↑ ↓ ← →', 'go to the neighbours of the selected event, or move the window'],
  ...TOOLS.map(([, name, about], i) => [String(i + 1), `tool ${name}: ${about}`]),
  ['Enter', 'select the event in the middle'], ['Ctrl + click', 'select one more event'],
  ['[ and ]', 'the event of the same name before or behind the selected one, on its track'], ['B', 'bookmark the window'],
  ['F', 'zoom to the selected event'], ['M', 'mark the selected event’s time'],
  ['Shift + drag', 'mark a stretch of time and sum it up'], ['0', 'show everything'],
  ['Backspace', 'back to the zoom before, as the browser’s Back'], ['V', 'show or hide the arrows of all visible flows'],
  ['C, P, H', 'one row of a track or all, pin it, hide it: the selected event’s, or that at the pointer'],
  ['Page up / down', 'scroll the tracks'], ['/', 'search; Esc leaves the field, and the matches stay marked'],
  ['N, Shift + N', 'next and previous match'], ['Esc', 'clear selection and mark'], ['?', 'this list']
];

// Asks the worker; one object per page.
class Loader {
  constructor(signal) {
    this.worker = new Worker(new URL('../trace/worker.js', import.meta.url), {type: 'module'});
    this.waiting = new Map();
    this.next = 1;
    this.worker.onmessage = ({data}) => {
      const w = this.waiting.get(data.id);
      if (!w) return;
      if (data.bytes) {
        w.progress?.(data.bytes);
        return;
      }
      this.waiting.delete(data.id);
      if (data.error) {
        const e = data.error.code ? new api.ApiError(data.error.status, data.error.code, data.error.message) :
                                    new Error(data.error.message);
        if (data.error.name === 'AbortError') e.name = 'AbortError';
        w.reject(e);
      } else
        w.resolve(data);
    };
    this.worker.onerror = (e) => {
      for (const w of this.waiting.values()) w.reject(new Error(e.message || 'the worker could not start'));
      this.waiting.clear();
    };
    signal.addEventListener('abort', () => this.worker.terminate());
  }

  load(url, progress) {
    const id = this.next++;
    const promise = new Promise((resolve, reject) => this.waiting.set(id, {resolve, reject, progress}));
    this.worker.postMessage({id, url: url.href});
    return {promise, cancel: () => this.worker.postMessage({id, cancel: true})};
  }
}

function matcher(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length ? (name) => {
    const n = name.toLowerCase();
    return words.every((w) => n.includes(w));
  } : null;
}

// t=12.5-40.25 (ms) as µs
function windowOf(text) {
  const m = /^(-?[\d.]+(?:e-?\d+)?)[-~](-?[\d.]+(?:e-?\d+)?)$/.exec(text || '');
  if (!m) return null;
  const a = Number(m[1]) * 1000, b = Number(m[2]) * 1000;
  return Number.isFinite(a) && Number.isFinite(b) && b > a ? [a, b] : null;
}

const digits = (us, span) =>
    (us / 1000).toFixed(Math.max(3, Math.min(9, 6 - Math.floor(Math.log10(span / 1000)))));

// Loads what the window shows more closely than the base does.  The server thins out large traces only;
// once a closer view brings nothing new, the base is known to be whole and nothing more is requested.
class Closer {
  constructor(ctx, view, loader, url, status) {
    Object.assign(this, {ctx, view, loader, url, status, whole: false, have: null});
    this.check = every(160, () => this.now());
  }

  now() {
    const v = this.view, span = v.t1 - v.t0, {start, end} = v.base.model;
    if (this.whole || this.ctx.signal.aborted || span > (end - start) * 0.6) return;
    const unit = span / v.width;
    const covers =
        this.have && this.have.start <= Math.max(start, v.t0) && this.have.end >= Math.min(end, v.t1);
    if (covers && unit > this.have.unit * 0.5) return;
    if (unit > (end - start) / RESOLUTION && !covers) return;  // the base is close enough
    const a = Math.max(start, v.t0 - span / 2), b = Math.min(end, v.t1 + span / 2);
    const columns = Math.round(Math.max(2000, v.width * 4));
    if (this.running) {
      this.again = true;
      return;
    }  // one at a time; the last request is next
    this.onBusy?.(true);
    const job = this.running =
        this.loader.load(this.url({start_time_ms: a / 1000, end_time_ms: b / 1000, resolution: columns}));
    job.promise
        .then(({model}) => {
          const before = this.count(v.base, a, b);
          if (model.events <= before) {
            this.whole = model.events > 50;
            this.have = {start: a, end: b, unit: 0};
            return;
          }
          this.have = {start: a, end: b, unit: (b - a) / columns};
          v.setDetail(model, a, b);
          this.onDetail?.();
        })
        .catch((e) => {
          if (!this.ctx.signal.aborted) this.ctx.warn([`Closer view failed: ${e.message}`]);
        })
        .finally(() => {
          this.running = null;
          this.onBusy?.(false);
          if (this.again) {
            this.again = false;
            this.now();
          }
        });
  }

  count(m, a, b) {
    let n = 0;
    for (const t of m.tracks.values())
      for (let i = 0; i < t.ts.length; i++)
        if (t.ts[i] <= b && t.end[i] >= a) n++;
    return n;
  }
}

export default {
  title: 'Trace',
  tool: TOOL,
  async render(ctx) {
    const loader = new Loader(ctx.signal);
    const url = (options) => api.address('tool', api.toolQuery(ctx.session.name, TOOL, ctx.hosts, options));
    const view = new TraceView();
    const status = h('span', {class: 'muted status', role: 'status'});
    const box = h('input', {
      type: 'search',
      placeholder: 'Search events',
      'aria-label': 'Search events',
      spellcheck: 'false',
      autocomplete: 'off',
      value: ctx.params.get('q') || ''
    });
    const where = h('select', {'aria-label': 'Search in', class: 'search-in'}, h('option', {value: ''}, 'names'),
        h('option', {value: 'arguments'}, 'arguments'));
    where.value = ctx.params.get('in') === 'arguments' ? 'arguments' : '';
    const found = h('span', {class: 'muted counter', role: 'status'});
    const panel = h('section', {class: 'card trace-detail', 'aria-label': 'Selection'});
    const help = h('dialog', {class: 'help', 'aria-label': 'Keys'}, h('h2', {}, 'Keys'),
        h('dl', {class: 'facts wide'}, KEYS.map(([k, v]) => [h('dt', {}, k), h('dd', {}, v)])),
        h('form', {method: 'dialog'}, h('button', {type: 'submit'}, 'Close')));
    const button = (label, text, fn) =>
        h('button', {type: 'button', 'aria-label': label, title: label, onclick: fn}, text);
    const tools = TOOLS.map(([name, text, about], i) => h('button', {
                              type: 'button',
                              'data-tool': name,
                              title: `${about} (key ${i + 1})`,
                              onclick: () => view.setTool(name)
                            },
                                text));
    const flows = h('button', {
      type: 'button',
      title: 'Arrows of all visible flows (key V)',
      onclick: () => view.showFlows(!view.flowsShown)
    },
        'Flows');
    const marks = h('div', {class: 'bar bookmarks', role: 'group', 'aria-label': 'Bookmarks', hidden: true});
    const addMark = () => {
      if (!view.base) return;
      const {selected} = view;
      view.bookmark(selected && selected.ts < view.t1 && selected.ts + selected.dur > view.t0 ? format.short(selected.name, 40) :
                                                                                               format.us((view.t0 + view.t1) / 2));
      announce(`Bookmark ${view.bookmarks.at(-1).label}`);
    };
    const showMarks = () => {
      marks.hidden = !view.bookmarks.length;
      marks.replaceChildren(...view.bookmarks.map((b) => h('span', {class: 'bookmark'},
          h('button', {type: 'button', title: `${format.us(b.t1 - b.t0)} from ${format.us(b.t0)}`, onclick: () => view.setWindow(b.t0, b.t1)}, b.label || 'Bookmark'),
          h('button', {type: 'button', class: 'act act-hidden', 'aria-label': `Remove the bookmark ${b.label}`, onclick: () => view.forget(b)}))));
    };
    const unhide = h('button', {type: 'button', hidden: true, onclick: () => view.showHidden()});
    const elsewhere = h('button', {
      type: 'button',
      title: 'Open the visible part in Perfetto, in a new window',
      onclick: () => toPerfetto(url({start_time_ms: view.t0 / 1000, end_time_ms: view.t1 / 1000, resolution: 0}),
          `${ctx.session.name} ${format.us(view.t1 - view.t0)}`, ctx.signal).catch((e) => ctx.warn([e.message]))
    },
        'Open in Perfetto');
    const pressed = () => {
      for (const b of tools) b.setAttribute('aria-pressed', String(b.dataset.tool === view.tool));
      flows.setAttribute('aria-pressed', String(view.flowsShown));
      unhide.hidden = !view.state.hidden.size;
      unhide.textContent = `Show ${view.state.hidden.size} hidden`;
      showMarks();
    };
    pressed();
    const place = h('div', {class: 'trace-place'}, loading('Loading the trace …'));
    ctx.root.append(h('h1', {class: 'sr'}, 'Trace'),
        h('div', {class: 'bar'}, box, where, button('Previous match', '‹', () => step(-1)),
            button('Next match', '›', () => step(1)), found, status,
            button('Zoom out', '−', () => view.zoom(1.6)), button('Zoom in', '+', () => view.zoom(1 / 1.6)),
            button('Show everything', 'Fit', () => view.fit()), button('Copy a link to this view', 'Link', () => copyLink()), button('Keys', '?', () => help.showModal())),
        h('div', {class: 'bar tools', role: 'toolbar', 'aria-label': 'What the pointer does'}, tools, flows, unhide,
            h('span', {class: 'grow'}), button('Bookmark this window (key B)', 'Bookmark', addMark), elsewhere),
        marks, place, help);

    let matches = null, at = -1, searching = null, counting = null, exact = null;
    let awaited = null;  // a match that is shown once the closer view of its time is there
    const search = () => {
      view.setSearch(where.value ? null : matcher(box.value));
      matches = exact = awaited = null;
      at = -1;
      counting?.abort();
      if (!box.value.trim()) {
        found.textContent = '';
        return;
      }
      if (where.value) {
        found.textContent = 'Searching …';
        findArguments();
        return;
      }
      take(view.matching(view.base, MOST_MATCHES));
      countAll();
      if (view.base.model.events >= WHOLE && !closer.whole) askServer();
    };
    const take = (list) => {
      matches = list;
      at = -1;
      say();
    };
    // How many there are is the server's to say: what is loaded may be thinned out.
    const say = () => {
      const n = matches.length, all = Math.max(exact ?? n, n), more = exact === null && n === MOST_MATCHES ? '+' : '';
      const total = `${format.count(all)}${more} match${all === 1 ? '' : 'es'}`;
      const part = where.value ? 'first' : 'loaded';
      if (at < 0)
        found.textContent = all > n ? `${total}, ${format.count(n)} ${part}` : total;
      else
        found.textContent = `${format.count(at + 1)} of ${format.count(n)}` + (all > n ? ` ${part}, ${total}` : '');
    };
    const countAll = debounce(150, async () => {
      const text = box.value.trim();
      if (!text || ctx.signal.aborted) return;
      counting = new AbortController();
      ctx.signal.addEventListener('abort', () => counting.abort());
      try {
        const {events} = await exactSums(ctx, {name: text, limit: 0}, counting.signal);
        if (box.value.trim() !== text) return;
        exact = events;
        say();
      } catch { /* the count of what is loaded stays */
      }
    });
    // Arguments are not loaded: the server reads them, those of all events.
    const findArguments = debounce(250, async () => {
      const text = box.value.trim();
      if (!text || !where.value || ctx.signal.aborted) return;
      counting?.abort();
      const mine = counting = new AbortController();
      ctx.signal.addEventListener('abort', () => mine.abort());
      try {
        const {count, list} = await inArguments(ctx, text, mine.signal);
        if (mine.signal.aborted) return;
        exact = count;
        take(list);
        announce(found.textContent);
      } catch (e) {
        if (e.name === 'AbortError' || mine.signal.aborted) return;
        found.textContent = e.message;
      }
    });
    // Selects a match that the server found; false: it is not loaded.
    const selectFound = (m) => {
      const e = view.find(m.pid, m.tid, m.ts, m.dur);
      if (!e || Math.abs(e.dur - m.dur) > 2e-3) return false;
      awaited = null;
      view.select(e, true);
      return true;
    };
    // What is drawn may be thinned out: then its time is looked at closely first.
    const goTo = (m) => {
      if (selectFound(m)) return;
      awaited = m;
      view.setWindow(m.ts - 5 * (m.dur || 1), m.ts + 6 * (m.dur || 1));
    };
    // A trace that was thinned out hides events from the search above: the server knows them all.
    const askServer = debounce(400, () => {
      const text = box.value.trim();
      searching?.cancel();
      if (!text || ctx.signal.aborted) return;
      const job = searching = loader.load(url({search_prefix: text}));
      job.promise
          .then(({model}) => {
            if (searching !== job || box.value.trim() !== text) return;
            const list = view.matching(view.attach(model, model.start, model.end), MOST_MATCHES);
            if (list.length > matches.length) take(list);
          })
          .catch((e) => {
            if (e.name !== 'AbortError') ctx.warn([`Search on the server failed: ${e.message}`]);
          });
    });
    const step = (by) => {
      if (!matches || !matches.length) {
        announce('No match');
        return;
      }
      if (at < 0) {
        at = matches.findIndex((m) => m.ts >= view.t0);
        if (at < 0) at = 0;
        if (by < 0) at = (at - 1 + matches.length) % matches.length;
      } else
        at = (at + by + matches.length) % matches.length;
      const m = matches[at];
      if (m.m)
        view.select(view.eventOf(m.m, m.key, m.row, m.i), true);
      else
        goTo(m);
      say();
    };
    where.addEventListener('change', () => {
      ctx.update({in: where.value});
      if (view.base) search();
    });
    ctx.searchFor = (text) => {
      box.value = text;
      where.value = '';
      ctx.update({q: text, in: ''});
      search();
    };
    box.addEventListener('input', debounce(120, () => {
      ctx.update({q: box.value});
      if (view.base) search();
    }));
    box.addEventListener('keydown', (e) => {
      if (e.key === 'Enter') {
        e.preventDefault();
        step(e.shiftKey ? -1 : 1);
      } else if (e.key === 'Escape') {
        e.preventDefault();  // else the text would go, and what it marks would stay
        view.canvas.focus();
      }
    });
    ctx.onKey = (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
      if (e.key === '/') {
        e.preventDefault();
        box.focus();
        box.select();
      } else if (e.key === '?')
        help.showModal();
      else if (e.key === 'b')
        addMark();
      else if (e.key === 'n' || e.key === 'N')
        step(e.key === 'N' ? -1 : 1);
      else if (e.key === 'Backspace') {
        e.preventDefault();
        if (zooms) history.back();
      }
      else if (e.target === document.body)
        view.key(e);
    };
    ctx.root.addEventListener('keydown', (e) => ctx.onKey(e));

    // Keys work from the start, before anything has the focus.
    const stray = (e) => {
      if (e.target === document.body)
        (e.type === 'keyup' ? view.keys.delete(e.key.toLowerCase()) : ctx.onKey(e));
    };
    for (const type of ['keydown', 'keyup']) addEventListener(type, stray, {signal: ctx.signal});

    // The address follows: each zoom that rests is a place to which Back returns, all else replaces the last one.
    let restingSpan = null, zooms = 0;
    const windowText = () => {
      const span = view.t1 - view.t0, all = view.full[1] - view.full[0];
      return span > all * 0.999 ? '' : `${digits(view.t0, span)}~${digits(view.t1, span)}`;
    };
    const copyLink = async () => {
      if (view.base) ctx.update({t: windowText()});  // before that the address has it
      const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
      announce(status.textContent = copied ? 'The link to this view is copied' : 'The address of this page is the link');
    };
    const pushZoom = debounce(REST_MS, () => {
      if (ctx.signal.aborted || restingSpan === null || sameZoom()) return;
      restingSpan = view.t1 - view.t0;
      ctx.update({t: windowText()}, 'push', {zoom: ++zooms});
    });
    const sameZoom = () => Math.abs((view.t1 - view.t0) / restingSpan - 1) < 0.01;
    const remember = every(300, () => {
      if (ctx.signal.aborted || !view.base) return;
      const span = view.t1 - view.t0, {state} = view;
      const changes = {
        e: view.picked.map((s) => `${s.pid}~${s.tid}~${s.ts}~${s.dur}`),
        c: [...state.collapsed].join('~'),
        fold: [...state.folded],
        pin: [...state.pinned],
        hide: [...state.hidden],
        r: view.range ? `${digits(view.range[0], span)}~${digits(view.range[1], span)}` : '',
        rt: view.rangeTracks || [],
        flows: view.flowsShown ? '1' : '',
        b: view.bookmarks.map((b) => `${digits(b.t0, b.t1 - b.t0)}~${digits(b.t1, b.t1 - b.t0)}~${b.label}`),
        y: String(Math.round(view.scroller.scrollTop) || ''),
      };
      if (sameZoom()) changes.t = windowText();
      ctx.update(changes);
      if (!sameZoom()) pushZoom();
    });
    // Back and Forward between zooms: what is loaded stays.  Any other change of the address draws the page anew.
    ctx.readdress = (at, entry) => {
      if (!view.base || !entry || entry.zoom === undefined) return false;
      const wanted = windowOf(at.params.get('t'));
      restingSpan = wanted ? wanted[1] - wanted[0] : view.full[1] - view.full[0];
      zooms = entry.zoom;
      view.setWindow(...(wanted || view.full));
      remember();
      return true;
    };
    const closer = new Closer(ctx, view, loader, url);
    closer.onBusy = (now) => {
      view.element.classList.toggle('busy', now);
      view.element.setAttribute('aria-busy', String(now));
    };
    closer.onDetail = () => {
      if (awaited && (awaited.ts < view.t0 || awaited.ts > view.t1)) awaited = null;  // the reader went on
      if (awaited) selectFound(awaited);
    };
    const show = eventPanel(ctx, view, panel);
    let summing = null, all = null;  // the sums at work; how many events the trace has
    ctx.signal.addEventListener('abort', () => summing?.abort());
    view.element.addEventListener('view', () => {
      remember();
      closer.check();
    });
    view.element.addEventListener('tool', () => {
      remember();
      pressed();
    });
    view.element.addEventListener('select', (e) => {
      remember();
      show(e.detail);
    });
    view.element.addEventListener('range', (e) => {
      remember();
      summing?.abort();
      summing = new AbortController();
      if (e.detail)
        rangePanel(ctx, view, panel, e.detail, summing.signal);
      else
        show(view.selected);
    });
    view.element.addEventListener('drawn', () => {
      const {p95} = view.drawTimes();
      const have = view.base.model.events;
      const coarse = all > have ? ` of ${format.count(all)} drawn, zoom in for all` : '';
      const text = `${format.us(view.t1 - view.t0)} visible, ${format.count(have)} events${coarse}`;
      if (status.textContent !== text) status.textContent = text;
      status.title = `drawing: ${p95.toFixed(1)} ms at the 95th percentile`;
      view.element.dataset.drawn = String(view.drawn);
    });
    ctx.signal.addEventListener('abort', () => view.close());

    const start = (answer) => {
      ctx.warn(answer.warnings);
      if (!answer.model.events) {
        place.replaceChildren(empty('No events in this trace',
            'The capture recorded nothing. Capture again while the program computes, or choose another host.'));
        return;
      }
      for (const pid of (ctx.params.get('c') || '').split('~').filter(Boolean))
        view.state.collapsed.add(Number(pid));
      for (const [name, set] of [['fold', 'folded'], ['pin', 'pinned'], ['hide', 'hidden']])
        for (const key of ctx.params.getAll(name)) view.state[set].add(key);
      view.flowsShown = ctx.params.get('flows') === '1';
      view.bookmarks = ctx.params.getAll('b').flatMap((text) => {
        const [, times, label] = /^([^~]*~[^~]*)~(.*)$/s.exec(text) || [], at = windowOf(times);
        return at ? [{t0: at[0], t1: at[1], label}] : [];
      });
      place.replaceChildren(view.element, panel);
      view.setBase(answer.model);
      const wanted = windowOf(ctx.params.get('t'));
      if (wanted) view.setWindow(wanted[0], wanted[1], true);
      restingSpan = view.t1 - view.t0;
      ctx.update({}, undefined, {zoom: 0});
      search();
      const named = ctx.params.getAll('e').map((e) => e.split('~').map(Number));
      const picked = named.filter((e) => e.length === 4 && e.every(Number.isFinite)).map((e) => view.find(...e)).filter(Boolean);
      if (picked.length)
        view.select(picked[0], true);
      else
        show(null);
      picked.slice(1).forEach((e) => view.pick(e));
      const marked = windowOf(ctx.params.get('r')), on = ctx.params.getAll('rt');
      if (marked) view.setRange(marked, on.length ? on : null);
      pressed();
      const y = Number(ctx.params.get('y'));
      if (y > 0) view.scroller.scrollTop = y;
      if (answer.model.lost)
        ctx.warn([`${format.count(answer.model.lost)} events nested too deeply are not drawn.`]);
      closer.check();
      exactSums(ctx, {limit: 0}, ctx.signal)
          .then(({events}) => {
            all = events;
            view.invalidate();
          })
          .catch(() => {});  // then nothing is said of it
    };
    const wait = place.firstChild;
    loader
        .load(url({resolution: RESOLUTION}),
            (bytes) => {
              wait.lastChild.textContent = `Loading the trace … ${format.bytes(bytes)}`;
            })
        .promise.then(start)
        .catch((e) => {
          if (!ctx.signal.aborted)
            place.replaceChildren(problem('Trace', e, () => dispatchEvent(new Event('hashchange')), ctx.meant(e)));
        });
  },
};
