// SPDX-License-Identifier: Apache-2.0
// Inference: how long requests and batches of a model server took, by model, and where their time went.

import {h} from '../lib/dom.js';
import * as format from '../lib/format.js';
import {DataTable} from '../lib/table.js';
import {columns, column} from '../lib/gviz.js';
import {withUnits} from '../lib/units.js';
import {empty} from '../lib/notes.js';
import {parts, stacked} from '../lib/chart.js';
import {detail, tableState} from '../lib/detail.js';

const REQUEST_ORDERS = [
  'Latency', 'Request delay for batching', 'Request size', 'Host preprocess', 'Host batch formation', 'Host runtime',
  'Data transfer H2D', 'Data transfer D2H', 'Device compute', 'Host postprocess', 'Idle time'
];
const BATCH_ORDERS = ['Latency', 'Batching delay', 'Padding amount', 'Batch size after padding', 'Batching efficiency'];
// Parts of a request's latency.  XProf's table says "Host batch formation" of the delay before a batch.
const PARTS = [
  ['host_preprocessing', 'Host preprocess'], ['host_batch_formation', 'Waiting for a batch'], ['host_runtime', 'Host runtime'],
  ['data_transfer_h2d', 'To the device'], ['device_compute', 'Device compute'], ['data_transfer_d2h', 'From the device'],
  ['host_postprocess', 'Host postprocess'], ['idle time', 'Idle']
];

const isSample = (text) => /^[\d.]+$/.test(text);

// Tables of the answer by model: [{name, requests, batches, tensors}].
function models(answer) {
  const [names, ...rest] = (answer || []).map(columns);
  const out = [];
  for (const table of rest) {
    const has = (id) => table.columns.some((c) => c.id === id);
    if (has('request_id')) out.push({name: names.columns[0].values[out.length], requests: table, batches: null, tensors: null});
    else if (out.length && has('batch_id')) out[out.length - 1].batches = table;
    else if (out.length && has('tensor_pattern')) out[out.length - 1].tensors = table;
  }
  return out;
}

// The row of TABLE whose percentile is the least one that is not below P.
function rowAt(table, p) {
  const percentile = column(table, 'percentile').values;
  let best = -1;
  percentile.forEach((text, i) => {
    if (isSample(text) && Number(text) >= p && (best < 0 || Number(text) < Number(percentile[best]))) best = i;
  });
  return best;
}

function tiles(model, byLatency) {
  const tile = (label, value, note) => h('div', {class: 'tile'}, h('dt', {}, label), h('dd', {}, value),
      note ? h('dd', {class: 'muted small'}, note) : '');
  const {requests, batches} = model, latency = column(requests, 'latency_ms').values;
  const at = (p) => [rowAt(requests, p)].filter((i) => i >= 0).map((i) => tile(`p${p}`, format.ms(latency[i])));
  return h('dl', {class: 'tiles'}, tile('Average latency', format.ms(Number(requests.props.averageLatencyMs))),
      byLatency ? [50, 90, 99].map(at) : '',
      tile('Requests each second', format.number(Number(requests.props.throughput))),
      batches ? tile('Batches each second', format.number(Number(batches.props.throughput)),
          `${format.ms(Number(batches.props.averageLatencyMs))} each`) : '',
      batches && batches.props.hasBatchingParam === 'true' ?
          tile('Largest batch', batches.props.batchingParamMaxBatchSize, `allowed: ${batches.props.batchingParamAllowedBatchSizes || 'any'}`) : '');
}

function partsOf(requests) {
  return PARTS.map(([id, label], color) => ({label, color, values: column(requests, id)?.values}))
      .filter((p) => p.values && p.values.some((v) => v > 0));
}

// Where the time goes: of the average request, and of requests from the shortest to the longest.
function whereTimeGoes(requests, order) {
  const percentile = column(requests, 'percentile').values, all = partsOf(requests);
  const mean = percentile.indexOf('Average');
  const average = parts({label: 'The average request', format: format.ms,
    items: all.map((p) => ({label: p.label, value: p.values[mean] || 0, color: p.color}))});
  const rows = percentile.map((text, i) => i).filter((i) => isSample(percentile[i]))
                   .sort((a, b) => Number(percentile[a]) - Number(percentile[b]));
  const latency = column(requests, 'latency_ms').values, id = column(requests, 'request_id').values;
  const chart = rows.length ? stacked({
    label: `Requests by percentile of ${order.toLowerCase()}`,
    names: rows.map((i) => `p${Number(percentile[i])}`),
    series: all.map((p) => ({label: p.label, color: p.color, values: Float64Array.from(rows, (i) => p.values[i])})),
    format: format.ms
  }) : '';
  return [
    average ? h('section', {class: 'card'}, h('h2', {}, 'The average request'), average) : '',
    chart ? h('section', {class: 'card'}, h('h2', {}, `Requests by percentile of ${order.toLowerCase()}`), chart,
        h('p', {class: 'muted small'}, `The parts are what the profile tells of a request; they need not add up to its latency. The longest of these took ${
            format.ms(Math.max(...rows.map((i) => latency[i])))} (request ${id[rows.reduce((a, b) => (latency[b] > latency[a] ? b : a))]}).`)) : ''
  ];
}

function dataTable(ctx, table, {caption, csv, state, open, width}) {
  const cols = withUnits(table.columns, ctx, 'inference_profile').filter((c) => c.type === 'number' || c.values.some((v) => v !== ''));
  const shown = cols.map((c) => ({
    ...c,
    title: c.label,
    width: width && width[c.id]
  }));
  return new DataTable({
    columns: shown,
    length: table.length,
    caption,
    csv: `${csv}_${ctx.session.name.replace(/[^\w.-]+/g, '_')}.csv`,
    ...(state ? tableState(ctx, null) : {}),
    onOpen: (r) => open(shown[0].values[r], shown.map((c) => [c.label, c.format ? c.format(c.values[r]) : c.values[r]])),
    empty: 'There are none.'
  }).element;
}

// "50.00%: 1.2ms<br>75.00%: …" as columns of numbers.
function withPercentiles(tensors) {
  const text = column(tensors, 'percentile').values;
  const read = text.map((v) => new Map(v.split('<br>').map((p) => p.split(': ')).map(([k, t]) => [parseFloat(k), parseFloat(t)])));
  const marks = [...new Set(read.flatMap((m) => [...m.keys()]))].filter(Number.isFinite).sort((a, b) => a - b);
  const more = marks.map((p) => ({id: `p${p}`, label: `p${p}`, type: 'number', unit: 'ms', values: Float64Array.from(read, (m) => m.get(p) ?? NaN)}));
  const plain = (c) => (c.id === 'tensor_pattern' ? {...c, values: c.values.map((v) => v.replaceAll('<br>', '; '))} : c);
  return {...tensors, columns: [...tensors.columns.filter((c) => c.id !== 'percentile').map(plain), ...more]};
}

export default {
  title: 'Inference',
  tool: 'inference_profile',
  async render(ctx) {
    const known = (name, list) => (list.includes(ctx.params.get(name)) ? ctx.params.get(name) : 'Latency');
    const order = known('requests', REQUEST_ORDERS), batchOrder = known('batches', BATCH_ORDERS);
    const all = models(await ctx.load('inference_profile', {request_column: order, batch_column: batchOrder}));
    const model = all.find((m) => m.name === ctx.params.get('model')) || all[0];
    const pick = (id, label, list, value) => {
      const select = h('select', {id, onchange: () => ctx.update({[id]: select.value}, true)},
          list.map((v) => h('option', {value: v}, v)));
      select.value = value;
      return h('label', {class: 'check'}, `${label} `, select);
    };
    ctx.root.append(h('div', {class: 'title'}, h('h1', {}, 'Inference'),
        all.length > 1 ? pick('model', 'Model', all.map((m) => m.name), model.name) : ''));
    if (!model || !column(model.requests, 'percentile').values.some(isSample)) {
      ctx.root.append(empty('No requests of a model server in this profile',
          'Requests are recorded by TensorFlow Serving and servers like it while they answer.'));
      return;
    }
    const side = detail('Row');
    const open = (title, facts) => side.show(title, facts);
    ctx.root.append(tiles(model, order === 'Latency'), ...whereTimeGoes(model.requests, order).filter(Boolean),
        h('section', {class: 'card flush'}, h('div', {class: 'title pad'}, h('h2', {}, 'Requests'),
            pick('requests', 'Chosen by', REQUEST_ORDERS, order)),
            dataTable(ctx, model.requests, {caption: 'Requests', csv: 'requests', state: true, open})));
    if (model.batches)
      ctx.root.append(h('section', {class: 'card flush'}, h('div', {class: 'title pad'}, h('h2', {}, 'Batches'),
          pick('batches', 'Chosen by', BATCH_ORDERS, batchOrder)),
          dataTable(ctx, model.batches, {caption: 'Batches', csv: 'batches', open})));
    if (model.tensors)
      ctx.root.append(h('section', {class: 'card flush'}, h('h2', {class: 'pad'}, 'Tensors: time to linearize and delinearize'),
          dataTable(ctx, withPercentiles(model.tensors), {caption: 'Tensor patterns', csv: 'tensors', open, width: {tensor_pattern: 360}})));
    ctx.root.append(side.element);
  },
};
