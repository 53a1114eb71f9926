// SPDX-License-Identifier: Apache-2.0
// Which events flows link.  Flows are numbered per model; what models share is the bind_id.

const MOST_ENDS = 400000;  // of a model; what is beyond has no arrows
const MOST_PAIRS = 20;     // ends of one flow that are linked with each other
const MOST_ARROWS = 2000;  // drawn at once

/* Ends of all flows of M (as TraceView attaches it), made once: a list by flow number of {from, to}, each a list
 * of [key, row, index]. */
function ends(m) {
  if (m.flows) return m.flows;
  const out = [];
  let n = 0;
  for (const [key, t] of m.tracks) {
    for (let d = 0; d < t.rows; d++) {
      for (let i = t.rowStart[d]; i < t.rowStart[d + 1] && n < MOST_ENDS; i++) {
        if (!t.flow[i]) continue;
        const of = out[t.flow[i] >>> 2] ||= {from: [], to: []};
        if (t.flow[i] & 2) of.from.push([key, d, i]);
        if (t.flow[i] & 1) of.to.push([key, d, i]);
        n++;
      }
    }
  }
  return (m.flows = out);
}

// Pairs [from, to] of events that the flow of E links; eventOf makes an event of [key, row, index].
export function linksOf(m, e, eventOf) {
  const mine = (e.flow >>> 2) - 1;
  const flow = mine < 0 ? 0 : m.model.binds.indexOf(e.model.binds[mine]) + 1;
  const of = flow && ends(m)[flow];
  if (!of) return [];
  const make = (list) => list.slice(0, MOST_PAIRS).map((x) => eventOf(...x));
  const from = make(of.from), to = make(of.to), pairs = [];
  for (const a of from)
    for (const b of to)
      if (a.key !== b.key || a.i !== b.i) pairs.push([a, b]);
  return pairs;
}

// Calls arrow(from, to), each [key, row, index], for flows of which an end lies between T0 and T1.
export function eachFlow(m, t0, t1, arrow) {
  const inside = ([key, , i]) => {
    const t = m.tracks.get(key);
    return t.ts[i] <= t1 && t.end[i] >= t0;
  };
  let n = 0;
  for (const of of ends(m)) {
    if (!of) continue;
    for (const a of of.from.slice(0, MOST_PAIRS)) {
      for (const b of of.to.slice(0, MOST_PAIRS)) {
        if (a === b || !(inside(a) || inside(b))) continue;
        arrow(a, b);
        if (++n === MOST_ARROWS) return;
      }
    }
  }
}
