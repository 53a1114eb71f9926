// SPDX-License-Identifier: Apache-2.0
// How many launched kernels wait for their stream, over time: a part of the page of kernels.

import {h} from '../lib/dom.js';
import {levels} from '../lib/chart.js';
import * as format from '../lib/format.js';
import {columns, column} from '../lib/gviz.js';

const POINTS = 300;
const waiting = (v) => (v === 0 || v >= 100 ? format.count(v) : v.toFixed(v < 10 ? 2 : 1));

// The streams whose launches are recorded, the longest mean queue first, with their parts of the time.
function streamsOf([, streams, queues]) {
  const all = columns(streams), parts = columns(queues);
  const values = (table, id) => column(table, id).values;
  const name = (table, i) => ['host', 'device', 'stream'].map((id) => values(table, id)[i]).join(' › ');
  const out = new Map();
  for (let i = 0; i < all.length; i++)
    if (values(all, 'launched')[i] > 0)
      out.set(name(all, i), {
        name: name(all, i),
        ops: values(all, 'ops')[i],
        launched: values(all, 'launched')[i],
        mean: values(all, 'avg_queue')[i],
        most: values(all, 'max_queue')[i],
        rows: []
      });
  for (let i = 0; i < parts.length; i++) out.get(name(parts, i))?.rows.push(i);
  for (const s of out.values()) {
    const pick = (id) => Float64Array.from(s.rows, (i) => values(parts, id)[i]);
    Object.assign(s, {begin: pick('begin_time'), average: pick('avg_queue'), longest: pick('max_queue')});
  }
  return [...out.values()].filter((s) => s.begin.length).sort((a, b) => b.mean - a.mean);
}

function draw(s) {
  const empty = s.average.filter((v) => v === 0).length / s.average.length;
  return [
    h('p', {}, `On average ${waiting(s.mean)} of its launched kernels and copies wait, at most ${format.count(s.most)}. `,
        empty > 0.5 ? `For ${format.fraction(empty)} of the time none waits: the device waits for the host.` : '',
        s.launched < s.ops ? ` Launches of ${format.count(s.ops - s.launched)} of ${format.count(s.ops)} are not recorded.` : ''),
    levels({
      label: `Launch queue of ${s.name}`,
      x: s.begin,
      series: [{label: 'mean', color: 0, values: s.average}],
      line: {label: 'longest', values: s.longest},
      format: waiting,
      formatX: format.us
    })
  ];
}

// A section that fills itself; it leaves the page where there is nothing to show.
export function launchQueue(ctx) {
  const place = h('div', {}, h('p', {class: 'muted', role: 'status'}, 'Counting launches …'));
  const card = h('section', {class: 'card launch-queue', 'aria-label': 'Launch queue'}, h('h2', {}, 'Launch queue'), place);
  ctx.load('launches', {points: POINTS})
      .then((answer) => {
        const streams = streamsOf(answer);
        if (!streams.length) {
          card.remove();
          return;
        }
        const body = h('div', {});
        const show = (i) => body.replaceChildren(...draw(streams[i]));
        const select = h('select', {'aria-label': 'Stream', onchange: () => show(Number(select.value))},
            streams.map((s, i) => h('option', {value: String(i)}, s.name)));
        place.replaceChildren(streams.length > 1 ? h('div', {class: 'check'}, select) : h('p', {class: 'muted'}, streams[0].name),
            body);
        show(0);
      })
      .catch((e) => {
        if (e.name !== 'AbortError') place.replaceChildren(h('p', {class: 'muted'}, e.message));
      });
  return card;
}
