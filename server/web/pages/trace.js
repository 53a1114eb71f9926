// SPDX-License-Identifier: Apache-2.0
// The trace view: loads trace_viewer@ window by window and keeps the address up to date.

import {h, debounce, every, announce} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import {DataTable} from '../lib/table.js';
import {empty, problem, loading} from '../lib/notes.js';
import {TraceView} from '../trace/view.js';

const TOOL = 'trace_viewer@', SUMS = 'trace_sums', SEARCH = 'trace_search';
const RESOLUTION = 8000;  // columns asked for over the whole trace
const MOST_MATCHES = 100000;
const MOST_FOUND = 1000;  // in arguments
const PS = 1e-6;  // µs
const WHOLE = 20000;  // answers with fewer events than this were hardly thinned out
const KEYS = [
  ['W / S, wheel', 'zoom in and out at the pointer'], ['A / D, Shift + wheel, drag', 'move left and right'],
  ['↑ ↓ ← →', 'go to the neighbours of the selected event, or move the window'],
  ['Enter', 'select the event in the middle'], ['F', 'zoom to the selected event'],
  ['M', 'mark the selected event’s time'], ['Shift + drag', 'mark a stretch of time and sum it up'],
  ['0', 'show everything'], ['Page up / down', 'scroll the tracks'], ['/', 'search'],
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

// The event with its arguments.  The server tells what has no length as one picosecond long, or viewers would
// not end it, but knows an event by its own duration.
async function wholeEvent(ctx, e, signal) {
  const ask = (ms) => api.tool(ctx.session.name, TOOL, ctx.hosts,
      {event_name: e.name, start_time_ms: e.ts / 1000, duration_ms: ms, unique_id: e.uid}, signal);
  if (e.dur >= 1.5 * PS) return ask(e.dur / 1000);
  try {
    return await ask(0);
  } catch (error) {
    if (error.code !== 'NOT_FOUND') throw error;
    return ask(PS / 1000);  // it is that short
  }
}

function eventPanel(ctx, view, panel) {
  let asked = null;
  return async (e) => {
    asked?.abort();
    if (!e) {
      panel.replaceChildren(h('p', {class: 'muted'},
          'Click an event for its details, or Shift + drag to sum up a stretch of time.'));
      return;
    }
    const facts = [
      ['Duration', format.us(e.dur)], ['Start', format.axisUs(e.ts, 0.001)],
      ['Track', `${e.process} › ${e.thread}`]
    ];
    const args =
        h('dl', {class: 'facts wide args'}, h('dt', {}, 'Details'), h('dd', {class: 'muted'}, 'loading …'));
    panel.replaceChildren(h('div', {class: 'title'}, h('h2', {class: 'breakable'}, e.name || '(no name)'),
                              h('button', {type: 'button', onclick: () => view.focusOn(e)}, 'Zoom to it'),
                              h('button', {
                                type: 'button',
                                onclick: () => {
                                  ctx.searchFor(e.name);
                                }
                              },
                                  'Find all'),
                              h('button', {
                                type: 'button',
                                'aria-label': 'Clear selection',
                                onclick: () => {
                                  view.select(null);
                                  view.canvas.focus();
                                }
                              },
                                  '✕')),
        h('div', {class: 'split'},
            h('div', {},
                h('dl', {class: 'facts wide'}, facts.map(([k, v]) => [h('dt', {}, k), h('dd', {}, v)])),
                view.links.length ? h('p', {}, 'Linked events: ', view.links.slice(0, 8).map(([a, b]) => {
                  const other = a.key === e.key && a.ts === e.ts && a.row === e.row ? b : a;
                  return h('button', {
                    type: 'button',
                    class: 'link',
                    onclick: () => {
                      view.select(other, true);
                      view.canvas.focus();
                    }
                  },
                      `${other.name.slice(0, 60)} on ${other.thread}`);
                })) :
                                    ''),
            args));
    asked = new AbortController();
    ctx.signal.addEventListener('abort', () => asked.abort());
    try {
      const {data} = await wholeEvent(ctx, e, asked.signal);
      const same = (data.traceEvents ||
          []).filter((x) => x.name === e.name && x.pid === e.pid && Math.abs(x.ts - e.ts) < 1e-3);
      const full = same.find((x) => x.tid === e.tid) || same[0];
      const list = Object.entries((full && full.args) || {}).filter(([k]) => k !== 'uid');
      const frame = full && full.sf !== undefined && data.stackFrames ? data.stackFrames[full.sf] : null;
      if (frame) list.push(['stack', frame.name]);
      args.replaceChildren(
          ...(list.length ? list : [['Details', 'none recorded']])
              .flatMap(
                  ([k, v]) => [h('dt', {}, k.replaceAll('_', ' ')),
                      h('dd', {class: 'breakable'}, typeof v === 'object' ? JSON.stringify(v) : String(v))]));
    } catch (error) {
      if (error.name !== 'AbortError')
        args.replaceChildren(h('dt', {}, 'Details'), h('dd', {class: 'muted'}, error.message));
    }
  };
}

// What the server counts and sums up, of all events of the window: a trace that is drawn may be thinned out.
const columnsOf = (data) => {
  const at = Object.fromEntries(data.cols.map((c, i) => [c.id, i]));
  return (id) => data.rows.map((r) => r.c[at[id]].v);
};

async function exactSums(ctx, options, signal) {
  const {data} = await api.tool(ctx.session.name, SUMS, ctx.hosts, options, signal);
  const column = columnsOf(data);
  return {
    names: column('name'),
    total: Float64Array.from(column('total_us')),
    count: Float64Array.from(column('count')),
    events: Number(data.p.count),
    allNames: Number(data.p.names),
    time: Number(data.p.total_ps) * PS
  };
}

// The earliest events that have TEXT in their arguments, and how many there are.
async function inArguments(ctx, text, signal) {
  const {data} = await api.tool(ctx.session.name, SEARCH, ctx.hosts, {text, limit: MOST_FOUND}, signal);
  const column = columnsOf(data);
  const names = column('name'), pids = column('pid'), tids = column('tid'), starts = column('start_us'),
        durations = column('duration_us');
  return {
    count: Number(data.p.count),
    list: names.map((name, i) => ({name, pid: pids[i], tid: tids[i], ts: starts[i], dur: durations[i]}))
  };
}

// The processes in sight, where some are collapsed: what is not shown is not summed up.
function openProcesses(view) {
  if (!view.collapsed.size) return undefined;
  return [...new Set(view.items.filter((i) => i.kind === 'thread').map((i) => i.process.pid))].join(',');
}

function rangeTable({names, total, count}) {
  return new DataTable({
    columns: [
      {id: 'name', label: 'Event', type: 'string', values: names, width: 380},
      {id: 'total', label: 'Time', unit: 'µs', type: 'number', values: total, format: format.us},
      {id: 'count', label: 'Count', type: 'number', values: count}, {
        id: 'average',
        label: 'Average',
        unit: 'µs',
        type: 'number',
        values: total.map((t, i) => t / count[i]),
        format: format.us
      }
    ],
    length: names.length,
    caption: 'Events in the marked time',
    csv: 'trace_range.csv',
    sort: {id: 'total', down: true},
  }).element;
}

const plural = (n, one) => `${format.count(n)} ${one}${n === 1 ? '' : 's'}`;

async function rangePanel(ctx, view, panel, range, signal) {
  const about = h('p', {class: 'muted sums', role: 'status'}, 'Adding up all events …');
  const place = h('div', {});
  panel.replaceChildren(
      h('div', {class: 'title'}, h('h2', {}, `${format.us(range[1] - range[0])} marked`),
          h('span', {class: 'muted'}, `from ${format.us(range[0])}`),
          h('button', {type: 'button', onclick: () => view.setWindow(range[0], range[1])}, 'Zoom to it'),
          h('button', {
            type: 'button',
            'aria-label': 'Clear mark',
            onclick: () => {
              view.setRange(null);
              view.canvas.focus();
            }
          },
              '✕')),
      about, place);
  try {
    const tracks = openProcesses(view);
    const none = {names: [], total: new Float64Array(0), count: new Float64Array(0), events: 0, allNames: 0, time: 0};
    const all = tracks === '' ?
        none :
        await exactSums(ctx, {start_time_ms: range[0] / 1000, end_time_ms: range[1] / 1000, tracks}, signal);
    if (signal.aborted) return;
    about.textContent = `${plural(all.events, 'event')}, ${format.us(all.time)} in all` +
        (all.allNames > all.names.length ? `; the ${plural(all.names.length, 'name')} with the most time` : '');
    place.replaceChildren(rangeTable(all));
  } catch (e) {
    if (e.name === 'AbortError' || signal.aborted) return;
    about.textContent = `Only of the events that are drawn: ${e.message}`;
    place.replaceChildren(rangeTable(view.summary(range[0], range[1])));
  }
}

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
    const place = h('div', {class: 'trace-place'}, loading('Loading the trace …'));
    ctx.root.append(h('h1', {class: 'sr'}, 'Trace'),
        h('div', {class: 'bar'}, box, where, button('Previous match', '‹', () => step(-1)),
            button('Next match', '›', () => step(1)), found, h('span', {class: 'grow'}), status,
            button('Zoom out', '−', () => view.zoom(1.6)), button('Zoom in', '+', () => view.zoom(1 / 1.6)),
            button('Show everything', 'Fit', () => view.fit()), button('Keys', '?', () => help.showModal())),
        place, help);

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
      } else if (e.key === 'Escape')
        view.canvas.focus();
    });
    ctx.onKey = (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
      if (e.key === '/') {
        e.preventDefault();
        box.focus();
        box.select();
      } else if (e.key === '?')
        help.showModal();
      else if (e.key === 'n' || e.key === 'N')
        step(e.key === 'N' ? -1 : 1);
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

    const remember = every(300, () => {
      if (ctx.signal.aborted || !view.base) return;
      const span = view.t1 - view.t0, all = view.full[1] - view.full[0];
      const s = view.selected;
      ctx.update({
        t: span > all * 0.999 ? '' : `${digits(view.t0, span)}~${digits(view.t1, span)}`,
        e: s ? `${s.pid}~${s.tid}~${s.ts}~${s.dur}` : '',
        c: [...view.collapsed].join('~'),
        r: view.range ? `${digits(view.range[0], span)}~${digits(view.range[1], span)}` : '',
        y: String(Math.round(view.scroller.scrollTop) || ''),
      });
    });
    const closer = new Closer(ctx, view, loader, url);
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
      const text = `${format.us(view.t1 - view.t0)} in sight, ${format.count(have)} events${coarse}`;
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
        view.collapsed.add(Number(pid));
      place.replaceChildren(view.element, panel);
      view.setBase(answer.model);
      const wanted = windowOf(ctx.params.get('t'));
      if (wanted) view.setWindow(wanted[0], wanted[1], true);
      search();
      const named = (ctx.params.get('e') || '').split('~').map(Number);
      const selected = named.length === 4 && named.every(Number.isFinite) ? view.find(...named) : null;
      if (selected)
        view.select(selected, true);
      else
        show(null);
      const marked = windowOf(ctx.params.get('r'));
      if (marked) view.setRange(marked);
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
            place.replaceChildren(problem('Trace', e, () => dispatchEvent(new Event('hashchange'))));
        });
  },
};
