// SPDX-License-Identifier: Apache-2.0
// Below the trace: the selected event, events that were picked, the sums of a marked range.

import {h} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import {DataTable} from '../lib/table.js';
import {reach} from '../lib/detail.js';

export const TOOL = 'trace_viewer@';
const SUMS = 'trace_sums', SEARCH = 'trace_search', OVERLAP = 'trace_overlap';
const MOST_FOUND = 1000;  // in arguments
const PS = 1e-6;          // µs

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

// Events that were picked one by one: how many, and their times by name.
function pickedTable(view) {
  const all = view.picked, by = new Map();
  for (const e of all) {
    const of = by.get(e.name) || [0, 0];
    by.set(e.name, [of[0] + e.dur, of[1] + 1]);
  }
  const first = Math.min(...all.map((e) => e.ts)), last = Math.max(...all.map((e) => e.ts + e.dur));
  const sum = all.reduce((t, e) => t + e.dur, 0);
  const clear = () => {
    view.select(null);
    view.canvas.focus();
  };
  return [
    h('div', {class: 'title'}, h('h2', {}, `${plural(all.length, 'event')} selected`),
        h('button', {type: 'button', onclick: () => view.setRange([first, last])}, 'Mark their time'),
        h('button', {type: 'button', 'aria-label': 'Clear selection', onclick: clear}, '✕')),
    h('p', {class: 'muted sums', role: 'status'}, `${format.us(sum)} in all, from the first one’s begin to the last one’s end ${format.us(last - first)}`),
    rangeTable({
      names: [...by.keys()],
      total: Float64Array.from(by.values(), (v) => v[0]),
      count: Float64Array.from(by.values(), (v) => v[1])
    }, 'Selected events')
  ];
}

export function eventPanel(ctx, view, panel) {
  let asked = null;
  return async (e) => {
    asked?.abort();
    if (!e) {
      panel.replaceChildren(h('p', {class: 'muted'},
          'Click an event for its details, or Shift + drag to sum up a stretch of time.'));
      return;
    }
    if (view.picked.length > 1) {
      panel.replaceChildren(...pickedTable(view));
      return;
    }
    // Of a trace that was thinned out: among the events that are drawn.
    const same = (text, by) => {
      const next = view.sameName(e, by), label = `${by > 0 ? 'Next' : 'Previous'} event of this name on its track`;
      return h('button', {type: 'button', 'aria-label': label, title: label, disabled: !next, onclick: () => view.goToSameName(by)}, text);
    };
    const facts = [
      ['Duration', format.us(e.dur)], ['Start', format.axisUs(e.ts, 0.001)],
      ['Track', `${e.process} › ${e.thread}`]
    ];
    const args =
        h('dl', {class: 'facts wide args'}, h('dt', {}, 'Details'), h('dd', {class: 'muted'}, 'loading …'));
    panel.replaceChildren(h('div', {class: 'title'}, h('h2', {class: 'breakable'}, e.name || '(no name)'),
                              h('button', {type: 'button', onclick: () => view.focusOn(e)}, 'Zoom to it'),
                              same('‹', -1), same('›', 1), h('button', {
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
                      `${format.short(other.name, 60)} on ${other.thread}`);
                })) :
                                    ''),
            args));
    reach(panel);
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
      reach(args);
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

export async function exactSums(ctx, options, signal) {
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
export async function inArguments(ctx, text, signal) {
  const {data} = await api.tool(ctx.session.name, SEARCH, ctx.hosts, {text, limit: MOST_FOUND}, signal);
  const column = columnsOf(data);
  const names = column('name'), pids = column('pid'), tids = column('tid'), starts = column('start_us'),
        durations = column('duration_us');
  return {
    count: Number(data.p.count),
    list: names.map((name, i) => ({name, pid: pids[i], tid: tids[i], ts: starts[i], dur: durations[i]}))
  };
}

// The tracks of a marked range, as the server takes them: those that were marked, or all that are shown; undefined: all.
function tracksOf(view) {
  const {collapsed, hidden} = view.state;
  if (view.rangeTracks) return view.rangeTracks.map((key) => key.replace('/', ':')).join(',');
  if (!collapsed.size && !hidden.size) return undefined;
  const some = new Set([...hidden].map((key) => key.split('/')[0]));  // processes of which not all is shown
  const shown = view.items.filter((i) => i.kind === 'thread').map((i) => (some.has(String(i.process.pid)) ?
      `${i.process.pid}:${i.thread.tid}` : String(i.process.pid)));
  return [...new Set(shown)].join(',');
}

function rangeTable({names, total, count}, caption = 'Events in the marked time') {
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
    caption,
    csv: 'trace_range.csv',
    sort: {id: 'total', down: true},
  }).element;
}

// How much of the collectives, copies and asynchronous ops of that time compute hides; null: none runs.
async function overlapTable(ctx, options, signal) {
  const {data} = await api.tool(ctx.session.name, OVERLAP, ctx.hosts, options, signal);
  if (!data.rows.length) return null;
  const column = columnsOf(data), time = (id, label) => ({id, label, unit: 'µs', type: 'number', values: column(id), format: format.us});
  return new DataTable({
    columns: [
      {id: 'kind', label: 'Kind', type: 'string', values: column('kind'), width: 280},
      time('time_us', 'Time'), time('overlapped_us', 'Overlapped'), time('exposed_us', 'Exposed'),
      {id: 'overlapped', label: 'Overlapped (share)', type: 'number', values: column('overlapped'), format: format.fraction},
      {id: 'devices', label: 'Devices', type: 'number', values: column('devices')}
    ],
    length: data.rows.length,
    caption: 'Collectives, copies and asynchronous ops in the marked time: overlapped by compute of their device, or exposed',
    csv: 'trace_overlap.csv',
    sort: {id: 'exposed_us', down: true},
  }).element;
}

const plural = (n, one) => `${format.count(n)} ${one}${n === 1 ? '' : 's'}`;

export async function rangePanel(ctx, view, panel, range, signal) {
  const about = h('p', {class: 'muted sums', role: 'status'}, 'Adding up all events …');
  const place = h('div', {});
  panel.replaceChildren(
      h('div', {class: 'title'}, h('h2', {}, `${format.us(range[1] - range[0])} marked`),
          h('span', {class: 'muted'}, `from ${format.us(range[0])}${
              view.rangeTracks ? `, on ${plural(view.rangeTracks.length, 'track')}` : ''}`),
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
    const tracks = tracksOf(view);
    const none = {names: [], total: new Float64Array(0), count: new Float64Array(0), events: 0, allNames: 0, time: 0};
    const options = {start_time_ms: range[0] / 1000, end_time_ms: range[1] / 1000, tracks};
    const all = tracks === '' ? none : await exactSums(ctx, options, signal);
    if (signal.aborted) return;
    about.textContent = `${plural(all.events, 'event')}, ${format.us(all.time)} in all` +
        (all.allNames > all.names.length ? `; the ${plural(all.names.length, 'name')} with the most time` : '');
    place.replaceChildren(rangeTable(all));
    if (all.events) overlapTable(ctx, options, signal).then((table) => signal.aborted || !table || place.append(table)).catch((e) => {
      if (!signal.aborted) place.append(h('p', {class: 'muted'}, `Overlap with compute: ${e.message}`));
    });
  } catch (e) {
    if (e.name === 'AbortError' || signal.aborted) return;
    about.textContent = `Only of the events that are drawn: ${e.message}`;
    place.replaceChildren(rangeTable(view.summary(range[0], range[1])));
  }
}
