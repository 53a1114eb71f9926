// SPDX-License-Identifier: Apache-2.0
// Where each track stands, top to bottom (px), whatever is scrolled.

export const ROW = 18, PROCESS = 28, GAP = 5, COUNTER = 40, EMPTY = 18;

export const keyOf = (pid, tid) => `${pid}/${tid}`;

/* models: [base, detail or null].  state: Sets, by which the reader arranges: collapsed (pids), and of keys folded (one
 * row is shown), hidden, pinned (first, and in sight whatever is scrolled).
 * Items: {kind: 'process' | 'thread' | 'counter', y, height, process, thread, counter, name, key, pinned, rows (shown),
 * all (rows there are)}; the first pinnedCount are pinned and end at pinnedHeight. */
export function layout(models, state) {
  const processes = new Map();
  for (const model of models) {
    for (const p of model ? model.processes : []) {
      let into = processes.get(p.pid);
      if (!into)
        processes.set(
            p.pid, into = {pid: p.pid, name: p.name, sort: p.sort, threads: new Map(), counters: new Map()});
      for (const t of p.threads) {
        const rows = t.track ? t.track.rows : 0, old = into.threads.get(t.tid);
        into.threads.set(
            t.tid, {tid: t.tid, name: t.name, sort: t.sort, rows: Math.max(rows, old ? old.rows : 0)});
      }
      for (const c of p.counters)
        if (!into.counters.has(c.name)) into.counters.set(c.name, c);
    }
  }
  const by = (a, b) => a.sort - b.sort || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  const items = [];
  let y = 0;
  const put = (item) => {
    items.push({...item, y});
    y += item.height;
  };
  const sorted = [...processes.values()].sort(by).map((p) => [p, tracksOf(p, by, state)]);
  for (const [, tracks] of sorted)
    tracks.filter((t) => t.pinned).forEach(put);
  const pinnedCount = items.length, pinnedHeight = y;
  for (const [p, tracks] of sorted) {
    put({kind: 'process', process: p, height: PROCESS});
    if (!state.collapsed.has(p.pid)) tracks.filter((t) => !t.pinned).forEach(put);
  }
  return {items, height: y, pinnedCount, pinnedHeight};
}

// Items of one process, without their places.
function tracksOf(p, by, {folded, hidden, pinned}) {
  const out = [];
  const add = (item) => {
    if (!hidden.has(item.key)) out.push({...item, process: p, pinned: pinned.has(item.key)});
  };
  for (const c of p.counters.values())
    add({kind: 'counter', counter: c, name: c.name, key: keyOf(p.pid, `counter ${c.name}`), rows: 0, all: 1, height: COUNTER});
  for (const t of [...p.threads.values()].sort(by)) {
    const key = keyOf(p.pid, t.tid), rows = folded.has(key) ? Math.min(1, t.rows) : t.rows;
    add({kind: 'thread', thread: t, name: t.name, key, rows, all: t.rows, height: rows ? rows * ROW + GAP : EMPTY});
  }
  return out;
}

// Tracks and counters of a model by key.
export function index(model) {
  const tracks = new Map(), counters = new Map();
  for (const p of model.processes) {
    for (const t of p.threads)
      if (t.track) tracks.set(keyOf(p.pid, t.tid), t.track);
    for (const c of p.counters) {
      let top = 0;
      for (const v of c.value)
        if (v > top) top = v;
      counters.set(keyOf(p.pid, `counter ${c.name}`), {...c, top});
    }
  }
  return {tracks, counters};
}

// Position in items of the one that covers Y, or of the next one.
export function itemAt(items, y) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].y + items[middle].height > y)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}
