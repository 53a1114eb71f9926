// SPDX-License-Identifier: Apache-2.0
// A trace in typed arrays: no object per event, so that millions fit and drawing never collects garbage.
//
// Times are µs (as in trace_viewer@'s JSON) from the start of the trace.  A *track* is one thread of one
// process; its events are kept row by row (row = nesting depth), inside a row by time.  Events of one row
// do not overlap, so their ends ascend as their starts do and both can be searched by halving.

const DEEPEST = 192;   // rows of one track; what is nested deeper is counted, not kept
const HALF_PS = 5e-7;  // µs: the tool rounds to ps

export const FLOW_IN = 1, FLOW_OUT = 2;

class Grow {
  constructor(type) {
    this.a = new type(256);
    this.n = 0;
  }
  push(v) {
    if (this.n === this.a.length) {
      const next = new this.a.constructor(this.n * 2);
      next.set(this.a);
      this.a = next;
    }
    this.a[this.n++] = v;
  }
  done() {
    return this.a.subarray(0, this.n);
  }
}

class TrackBuilder {
  constructor(pid, tid) {
    this.pid = pid;
    this.tid = tid;
    this.ts = new Grow(Float64Array);
    this.end = new Grow(Float64Array);
    this.name = new Grow(Uint32Array);
    this.uid = new Grow(Uint32Array);
    this.flow = new Grow(Uint32Array);  // 0: none; else flow number << 2 | direction
    this.open = null;                   // async: "cat id" -> [start, name]
  }

  add(ts, dur, name, uid, flow) {
    this.ts.push(ts);
    this.end.push(ts + Math.max(dur, 0));
    this.name.push(name);
    this.uid.push(uid);
    this.flow.push(flow);
  }

  // Sorts by (start, longer first), deals events to rows, and lays the rows one after the other.
  finish() {
    const n = this.ts.n, ts = this.ts.done(), end = this.end.done();
    let sorted = true;
    for (let i = 1; i < n && sorted; i++)
      sorted = ts[i - 1] < ts[i] || (ts[i - 1] === ts[i] && end[i - 1] >= end[i]);
    const order = new Uint32Array(n);
    for (let i = 0; i < n; i++) order[i] = i;
    if (!sorted) order.sort((a, b) => ts[a] - ts[b] || end[b] - end[a] || a - b);
    const row = new Uint8Array(n), last = new Float64Array(DEEPEST).fill(-Infinity);
    const size = new Uint32Array(DEEPEST + 1);
    let rows = 0, lost = 0;
    for (let k = 0; k < n; k++) {
      const i = order[k], start = ts[i] + HALF_PS;
      let d = 0;
      while (d < DEEPEST && last[d] > start) d++;
      if (d === DEEPEST) {
        row[k] = 255;
        lost++;
        continue;
      }
      row[k] = d;
      last[d] = Math.max(end[i], ts[i]);
      size[d]++;
      if (d >= rows) rows = d + 1;
    }
    const at = new Uint32Array(rows + 1);
    for (let d = 0; d < rows; d++) at[d + 1] = at[d] + size[d];
    const kept = n - lost, next = at.slice();
    const out = {
      pid: this.pid,
      tid: this.tid,
      rows,
      rowStart: at,
      lost,
      ts: new Float64Array(kept),
      end: new Float64Array(kept),
      busy: new Float64Array(kept + rows),
      name: new Uint32Array(kept),
      uid: new Uint32Array(kept),
      flow: new Uint32Array(kept),
    };
    for (let k = 0; k < n; k++) {
      if (row[k] === 255) continue;
      const i = order[k], to = next[row[k]]++;
      out.ts[to] = ts[i];
      out.end[to] = end[i];
      out.name[to] = this.name.a[i];
      out.uid[to] = this.uid.a[i];
      out.flow[to] = this.flow.a[i];
    }
    // busy[j + d]: time covered by the row's events before the j-th; one more entry per row.
    for (let d = 0; d < rows; d++) {
      let sum = 0;
      for (let j = at[d]; j < at[d + 1]; j++) {
        out.busy[j + d] = sum;
        sum += out.end[j] - out.ts[j];
      }
      out.busy[at[d + 1] + d] = sum;
    }
    this.ts = this.end = this.name = this.uid = this.flow = null;
    return out;
  }
}

// Takes trace events as parsed JSON (or single events) and makes the model.
export class TraceBuilder {
  constructor() {
    this.tracks = new Map();    // pid -> Map(tid -> TrackBuilder)
    this.counters = new Map();  // pid -> Map(name -> {ts, value})
    this.processes = new Map();
    this.names = [];
    this.nameIds = new Map();
    this.flows = new Map();
    this.events = 0;
    this.last = null;
  }

  nameId(name) {
    let id = this.nameIds.get(name);
    if (id === undefined) {
      id = this.names.length;
      this.names.push(name);
      this.nameIds.set(name, id);
    }
    return id;
  }

  flowId(bind) {
    let id = this.flows.get(bind);
    if (id === undefined) this.flows.set(bind, id = this.flows.size + 1);
    return id;
  }

  track(pid, tid) {
    if (this.last && this.last.pid === pid && this.last.tid === tid) return this.last;
    let of = this.tracks.get(pid);
    if (!of) this.tracks.set(pid, of = new Map());
    let t = of.get(tid);
    if (!t) of.set(tid, t = new TrackBuilder(pid, tid));
    return (this.last = t);
  }

  slice(pid, tid, name, ts, dur, uid = 0, flow = 0) {
    this.track(pid, tid).add(ts, dur, this.nameId(name), uid, flow);
    this.events++;
  }

  // One element of traceEvents.
  add(e) {
    if (e.ph !== 'M' && e.ph !== 'C' && !Number.isFinite(e.ts)) return;
    if (e.ph === 'X') {
      // bind_id may exceed 2^53 and lose its lowest bits in JSON.parse; equal ids stay equal.
      const flow = e.bind_id === undefined ?
          0 :
          (this.flowId(e.bind_id) << 2 | (e.flow_in ? FLOW_IN : 0) | (e.flow_out ? FLOW_OUT : 0)) >>> 0;
      this.slice(e.pid, e.tid, String(e.name), e.ts, e.dur || 0, (e.args && e.args.uid) || 0, flow);
    } else if (e.ph === 'M')
      this.meta(e);
    else if (e.ph === 'C')
      this.counter(e);
    else if (e.ph === 'b' || e.ph === 'e')
      this.async(e);
  }

  process(pid) {
    let p = this.processes.get(pid);
    if (!p) this.processes.set(pid, p = {pid, name: `Process ${pid}`, sort: pid, threads: new Map()});
    return p;
  }

  meta(e) {
    const p = this.process(e.pid), a = e.args || {};
    if (e.name === 'process_name')
      p.name = String(a.name);
    else if (e.name === 'process_sort_index')
      p.sort = Number(a.sort_index) || 0;
    else if (e.name === 'thread_name' || e.name === 'thread_sort_index') {
      let t = p.threads.get(e.tid);
      if (!t) p.threads.set(e.tid, t = {tid: e.tid, name: `Thread ${e.tid}`, sort: e.tid});
      if (e.name === 'thread_name')
        t.name = String(a.name);
      else
        t.sort = Number(a.sort_index) || 0;
    }
  }

  counter(e) {
    let of = this.counters.get(e.pid);
    if (!of) this.counters.set(e.pid, of = new Map());
    let c = of.get(e.name);
    if (!c) of.set(e.name, c = {name: String(e.name), stat: String(e.event_stats || ''), points: []});
    for (const entry of e.entries || []) {
      c.points.push([Number(entry[0]), Number(entry[1]) || 0]);
      this.events++;
    }
  }

  async(e) {
    const t = this.track(e.pid, e.tid === undefined ? 0 : e.tid), key = `${e.cat} ${e.id}`;
    t.open ||= new Map();
    if (e.ph === 'b')
      t.open.set(key, [e.ts, this.nameId(String(e.name)), (e.args && e.args.uid) || 0]);
    else if (t.open.has(key)) {
      const [ts, name, uid] = t.open.get(key);
      t.open.delete(key);
      t.add(ts, e.ts - ts, name, uid, 0);
      this.events++;
    }
  }

  // {processes: [{pid, name, threads: [{tid, name, track}], counters}], names, events, start, end, lost,
  //  binds: bind_id of each flow number less one}
  finish(head = {}) {
    let start = Infinity, end = -Infinity, lost = 0;
    for (const [pid, of] of this.tracks) {
      const p = this.process(pid);
      for (const [tid, builder] of of ) {
        let t = p.threads.get(tid);
        if (!t) p.threads.set(tid, t = {tid, name: `Thread ${tid}`, sort: tid});
        t.track = builder.finish();
        lost += t.track.lost;
        for (let d = 0; d < t.track.rows; d++) {
          start = Math.min(start, t.track.ts[t.track.rowStart[d]]);
          end = Math.max(end, t.track.end[t.track.rowStart[d + 1] - 1]);
        }
      }
      of.clear();
    }
    for (const [pid, of] of this.counters) {
      this.process(pid).counters = [...of.values()].map((c) => {
        c.points.sort((a, b) => a[0] - b[0]);
        if (c.points.length) {
          start = Math.min(start, c.points[0][0]);
          end = Math.max(end, c.points[c.points.length - 1][0]);
        }
        return {
          name: c.name,
          stat: c.stat,
          ts: Float64Array.from(c.points, (p) => p[0]),
          value: Float64Array.from(c.points, (p) => p[1])
        };
      });
    }
    const full = head.fullTimespan;
    if (Array.isArray(full) && full[1] > full[0]) {
      start = full[0] * 1000;
      end = full[1] * 1000;
    }
    if (!(end > start)) [start, end] = Number.isFinite(start) ? [start, start + 1] : [0, 1];
    const by = (a, b) => a.sort - b.sort || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
    const processes = [...this.processes.values()].sort(by).map(
        (p) => ({...p, threads: [...p.threads.values()].sort(by), counters: p.counters || []}));
    return {
      processes,
      names: this.names,
      events: this.events,
      start,
      end,
      lost,
      binds: Float64Array.from(this.flows.keys(), Number)
    };
  }
}

// All buffers of a model, for postMessage's transfer list.
export function buffers(model) {
  const out = [];
  for (const p of model.processes) {
    for (const t of p.threads)
      if (t.track)
        for (const k of ['ts', 'end', 'busy', 'name', 'uid', 'flow', 'rowStart']) out.push(t.track[k].buffer);
    for (const c of p.counters) out.push(c.ts.buffer, c.value.buffer);
  }
  return [...new Set(out)];
}

// First index in [low, high) whose value in the ascending array exceeds x (high if none).
export function above(array, low, high, x) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] > x)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// The same, found by steps that double from low: near results cost little.
export function aboveNear(array, low, high, x) {
  let step = 1, from = low;
  while (from < high && array[from] <= x) {
    low = from + 1;
    from += step;
    step *= 2;
  }
  return above(array, low, Math.min(from, high), x);
}
