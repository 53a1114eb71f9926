// SPDX-License-Identifier: Apache-2.0
// Memory viewer: what an HLO program holds at its peak, how its heap grows, and where its buffers lie.

import {h, s} from '../lib/dom.js';
import * as format from '../lib/format.js';
import {DataTable} from '../lib/table.js';
import {columns} from '../lib/gviz.js';
import {empty} from '../lib/notes.js';
import {boxes, treemap} from '../lib/boxes.js';
import {levels, byteTicks} from '../lib/chart.js';
import {hash} from '../lib/flame.js';
import {detail, tableState} from '../lib/detail.js';
import {programs, chosen, choice, instruction, missing, opLinks} from '../lib/programs.js';

const MIB = 2 ** 20;
const SPACES = ['main memory', '1', '2', '3', '4', 'host', '6'];
const GROUPS = ['Parameter', 'Output', 'Temporary', 'Constant', 'Thread-local'];
const MOST_POINTS = 1500, MOST_BOXES = 600, MOST_BLOCKS = 4000;
const LEFT = 68, BELOW = 24;

const num = (x) => Number(x) || 0;
// The end of a path tells files apart.
const tail = (path) => path.replace(/^.*\/(?=[^/]*\/[^/]*$)/, '…/');
const bytesOf = (mib) => Math.round(num(mib) * MIB);

function sourceOf(x) {
  const source = x.sourceInfo || {};
  return source.fileName ? `${source.fileName}${source.lineNumber ? `:${source.lineNumber}` : ''}` : '';
}

// Buffers at the peak, the largest first.
function peakBuffers(data) {
  const list = (data.maxHeap || []).map((b) => ({
    id: num(b.logicalBufferId),
    name: b.instructionName || b.label || '(no name)',
    bytes: bytesOf(b.logicalBufferSizeMib),
    unpadded: b.unpaddedShapeMib === undefined ? NaN : bytesOf(b.unpaddedShapeMib),
    shape: b.shapeString || '',
    group: b.groupName || '',
    opcode: b.opCode || '',
    op: b.tfOpName || '',
    source: sourceOf(b),
    stack: (b.sourceInfo && b.sourceInfo.stackFrame) || '',
  }));
  return list.sort((a, b) => b.bytes - a.bytes);
}

function tiles(data, buffers) {
  const tile = (label, value, note) => h('div', {class: 'tile'}, h('dt', {}, label), h('dd', {}, value),
      note ? h('dd', {class: 'muted small'}, note) : '');
  const peak = bytesOf(data.peakHeapMib), plain = bytesOf(data.peakUnpaddedHeapMib);
  const at = num(data.peakHeapSizePosition), names = data.hloInstructionNames || [];
  return h('dl', {class: 'tiles'},
      tile('Peak', format.bytes(peak), names[at] ? `at ${names[at]}, ${at + 1} of ${names.length}` : ''),
      tile('Padding at the peak', format.bytes(Math.max(0, peak - plain)), peak ? format.fraction((peak - plain) / peak) : ''),
      tile('Parameters', format.bytes(bytesOf(data.entryComputationParametersMib))),
      tile('Outputs', format.bytes(bytesOf(data.maybeLiveOutMib))),
      tile('All allocations', format.bytes(bytesOf(data.totalBufferAllocationMib)),
          `${format.bytes(bytesOf(data.indefiniteBufferAllocationMib))} for the whole run`),
      data.maxScopedVmemInstructionName ?
          tile('Most scoped memory', format.bytes(bytesOf(data.maxScopedVmemAllocationMib)), data.maxScopedVmemInstructionName) :
          '',
      tile('Buffers at the peak', format.count(buffers.length)));
}

function facts(ctx, module, b) {
  const out = [['Size', `${format.bytes(b.bytes)} (${format.count(b.bytes)} bytes)`]];
  if (b.unpadded < b.bytes) out.push(['Without padding', format.bytes(b.unpadded)]);
  for (const [label, value] of [['Shape', b.shape], ['Kind', b.group], ['Opcode', b.opcode], ['Framework op', b.op],
         ['Live', b.live], ['Offset', b.offset], ['Source', b.stack || b.source]])
    if (value) out.push([label, value]);
  if (b.id >= 0)
    out.push(['See also', opLinks(ctx, {module: module.module, op: instruction(b.name)}, 'memory_viewer')]);
  return out;
}

function picture(buffers, open) {
  const shown = buffers.slice(0, MOST_BOXES);
  const sum = buffers.reduce((a, b) => a + b.bytes, 0);
  const rest = buffers.slice(MOST_BOXES).reduce((a, b) => a + b.bytes, 0);
  const items = shown.map((b) => ({
    name: b.name,
    note: format.bytes(b.bytes),
    text: `${b.name}: ${format.bytes(b.bytes)}, ${format.fraction(b.bytes / sum)}${b.shape ? `, ${b.shape}` : ''}${
        b.group ? `, ${b.group.toLowerCase()}` : ''}${b.source ? `, ${b.source}` : ''}`,
    tone: b.group ? GROUPS.indexOf(b.group) + (GROUPS.includes(b.group) ? 0 : 15) : 14
  }));
  const values = shown.map((b) => b.bytes);
  if (rest > 0) {
    items.push({name: 'smaller ones', note: format.bytes(rest), tone: 14,
      text: `${format.count(buffers.length - shown.length)} smaller buffers: ${format.bytes(rest)}`});
    values.push(rest);
  }
  const kinds = GROUPS.filter((g) => buffers.some((b) => b.group === g));
  const bytes = (g) => buffers.reduce((a, b) => a + (b.group === g ? b.bytes : 0), 0);
  return [
    boxes({
      label: `${buffers.length} buffers at the peak, ${format.bytes(sum)}`,
      items,
      place: (width, height) => treemap(values, width, height),
      onOpen: (i) => i < shown.length && open(shown[i])
    }),
    h('ul', {class: 'legend'},
        kinds.map((g) => h('li', {}, h('i', {class: `swatch tone-${GROUPS.indexOf(g)}`}), `${g} ${format.bytes(bytes(g))}`)))
  ];
}

// Of many steps those with the most memory among their neighbours, in their order.
function thinned(sizes) {
  const every = Math.max(1, Math.ceil(sizes.length / MOST_POINTS)), out = [];
  for (let i = 0; i < sizes.length; i += every) {
    let best = i;
    for (let k = i; k < Math.min(sizes.length, i + every); k++)
      if (num(sizes[k]) > num(sizes[best])) best = k;
    out.push(best);
  }
  return out;
}

function heap(data) {
  const sizes = data.heapSizes || [], plain = data.unpaddedHeapSizes || [], names = data.hloInstructionNames || [];
  const at = thinned(sizes), peak = num(data.peakHeapSizePosition);
  const pick = (list) => Float64Array.from(at, (i) => bytesOf(list[i]));
  const padded = sizes.some((v, i) => num(v) !== num(plain[i]));
  return levels({
    label: 'Heap over the program',
    x: Float64Array.from(at),
    series: [{label: 'Heap', color: 0, values: pick(sizes)}],
    line: padded ? {label: 'Without padding', values: pick(plain)} : null,
    marks: sizes.length ? [{x: peak, label: 'peak'}] : [],
    format: format.bytes,
    formatX: (v) => `${format.count(Math.round(v) + 1)}`,
    scale: byteTicks,
    describeExtra: (i) => `, at ${names[at[i]] || '(no name)'}`,
    height: 220
  });
}

// Where buffers lie: to the right the order of the program, upwards the offset in their allocations.
function map(data, open) {
  const all = data.bufferBlocks || [], names = data.hloInstructionNames || [];
  const top = all.reduce((m, b) => Math.max(m, num(b.offset) + num(b.size)), 0);
  if (!(top > 0)) return null;
  const order = all.map((b, i) => i).sort((a, b) => num(all[b].size) - num(all[a].size)).slice(0, MOST_BLOCKS);
  const blocks = order.sort((a, b) => a - b).map((i) => all[i]);
  const steps = Math.max(names.length, 1 + all.reduce((m, b) => Math.max(m, num(b.endStep)), 0));
  const step = (v) => names[Math.min(num(v), names.length - 1)] || `instruction ${num(v) + 1}`;
  const describe = (b) => ({
    id: num(b.logicalBufferId),
    name: b.name || '(no name)',
    bytes: num(b.size),
    unpadded: b.unpaddedSize === undefined ? NaN : num(b.unpaddedSize),
    shape: b.shapeString || '',
    group: b.category || '',
    opcode: '',
    op: b.tfOpName || '',
    source: sourceOf(b),
    stack: (b.sourceInfo && b.sourceInfo.stackFrame) || '',
    live: `from ${step(b.startStep)} to ${step(b.endStep)}`,
    offset: format.bytes(num(b.offset)),
  });
  const items = blocks.map((b) => {
    const d = describe(b);
    return {
      name: d.name,
      note: format.bytes(d.bytes),
      text: `${d.name}: ${format.bytes(d.bytes)} at offset ${d.offset}, ${d.live}`,
      tone: d.id < 0 ? -1 : hash(d.name) % 12
    };
  });
  const marks = byteTicks(top, 4).filter((v) => v <= top * 1.001);
  const y = (v, height) => (height - BELOW - 8) * (1 - v / top) + 8;
  const x = (v, width) => LEFT + v / steps * (width - LEFT - 8);
  const picture = boxes({
    label: `Places of ${blocks.length} buffers over the program`,
    items,
    place: (width, height) => blocks.map((b) => {
      const low = y(num(b.offset), height), high = y(num(b.offset) + num(b.size), height);
      const left = x(num(b.startStep), width);
      return {x: left, y: high, w: Math.max(1, x(num(b.endStep) + 1, width) - left), h: Math.max(1, low - high)};
    }),
    axes: (width, height) => [
      ...marks.flatMap((v) => [
        s('line', {class: 'grid', x1: LEFT, x2: width - 8, y1: y(v, height), y2: y(v, height)}),
        s('text', {class: 'tick', x: LEFT - 6, y: y(v, height) + 4, 'text-anchor': 'end'}, format.bytes(v))
      ]),
      s('text', {class: 'tick', x: LEFT, y: height - 6}, 'first instruction'),
      s('text', {class: 'tick', x: width - 8, y: height - 6, 'text-anchor': 'end'}, 'last')
    ],
    onOpen: (i) => open(describe(blocks[i])),
    height: 360
  });
  return [picture, all.length > blocks.length ?
      h('p', {class: 'muted small'}, `${format.count(all.length - blocks.length)} smaller buffers are not drawn.`) : ''];
}

function bufferTable(ctx, buffers, csv, open) {
  const text = (id, label, width) =>
      ({id, label, type: 'string', values: buffers.map((b) => b[id]), width, format: id === 'source' ? tail : undefined});
  const number = (id, label) => ({id, label, type: 'number', values: Float64Array.from(buffers, (b) => b[id]), format: format.bytes, unit: 'bytes'});
  return new DataTable({
    columns: [text('name', 'Buffer', 260), number('bytes', 'Size'), number('unpadded', 'Without padding'), text('shape', 'Shape', 200),
      text('group', 'Kind'), text('opcode', 'Opcode'), text('op', 'Framework op', 260), text('source', 'Source', 260)],
    length: buffers.length,
    caption: 'Buffers at the peak',
    csv,
    facetColumns: ['group', 'opcode'],
    ...tableState(ctx, {id: 'bytes', down: true}),
    onOpen: (r) => open(buffers[r]),
    empty: 'No buffer is live at the peak.'
  }).element;
}

// A table of what holds the peak, by source line or by op, also beside another program's.
function holderTable(answer, csv, side) {
  const table = columns(answer);
  const bytes = new Set(['bytes', 'other_bytes', 'change']);
  const cols = table.columns.map((c) => ({
    ...c,
    title: c.label,
    label: c.id === 'share' ? 'Share' : c.label,
    format: bytes.has(c.id) ? format.bytes : c.id === 'share' ? (v) => format.fraction(v / 100) : c.id === 'source' ? tail : undefined,
    unit: bytes.has(c.id) ? 'bytes' : c.id === 'share' ? '%' : undefined,
    width: c.id === 'source' ? 300 : undefined
  }));
  return new DataTable({
    columns: cols,
    length: table.length,
    caption: 'What holds the peak',
    csv,
    sort: null,
    onOpen: (r) => side.show(cols[0].values[r], cols.map((c) => [c.label, c.format && c.id !== 'source' ? c.format(c.values[r]) : c.values[r]])),
    empty: 'Nothing is held at the peak.'
  }).element;
}

export default {
  title: 'Memory viewer',
  tool: 'memory_viewer',
  async render(ctx) {
    const list = await programs(ctx);
    const module = chosen(ctx, list);
    const space = String(Math.max(0, Math.floor(num(ctx.params.get('space')))));
    const by = ctx.params.get('by') === 'ops' ? 'ops' : 'lines';
    const other = list.some((m) => m.module === ctx.params.get('other')) ? ctx.params.get('other') : '';
    const pick = (id, label, options, value, name) => {
      const select = h('select', {id, onchange: () => ctx.update({[name]: select.value}, true)},
          options.map(([v, text]) => h('option', {value: v}, text)));
      select.value = value;
      return h('label', {class: 'check'}, `${label} `, select);
    };
    const change = (label) => ctx.update({module: label, program: '', other: '', q: ''}, true);
    ctx.root.append(h('div', {class: 'title'}, h('h1', {}, 'Memory viewer'),
        list.length ? choice({list, value: module && module.module, id: 'program', label: 'Program', onChoose: change}) : '',
        list.length ? pick('space', 'Memory space', SPACES.map((text, i) => [String(i), i && i !== 5 ? text : `${i} (${text})`]), space, 'space') : ''));
    if (!module) {
      ctx.root.append(missing(ctx, list));
      return;
    }
    const asked = {module_name: module.module, memory_space: space};
    const [data, holders] = await Promise.all(
        [ctx.load('memory_viewer', asked), ctx.load('memory_viewer', {...asked, view: by, other})]);
    const buffers = peakBuffers(data || {});
    const csv = (what) => `${what}_${module.module.replace(/[^\w.-]+/g, '_')}.csv`;
    const side = detail('Buffer');
    const open = (b) => side.show(b.name, facts(ctx, module, b));
    ctx.root.append(tiles(data, buffers));
    if (!buffers.length && !(data.heapSizes || []).some((v) => num(v) > 0)) {
      ctx.root.append(empty('The program has nothing in this memory', 'Choose another memory space above.'));
      return;
    }
    const places = map(data, open);
    ctx.root.append(h('section', {class: 'card'}, h('h2', {}, 'Buffers at the peak'), picture(buffers, open)), side.element,
        h('section', {class: 'card flush'}, h('div', {class: 'title pad'}, h('h2', {}, 'What holds the peak'),
            pick('by', 'By', [['lines', 'source line'], ['ops', 'op']], by, 'by'),
            choice({list: list.filter((m) => m !== module), value: other, id: 'other', label: 'Beside', none: 'no other program',
              onChoose: (label) => ctx.update({other: label}, true)})),
            holderTable(holders, csv(`peak_by_${by}`), side)),
        (data.heapSizes || []).length ? h('section', {class: 'card'}, h('h2', {}, 'Heap over the program'), heap(data)) : '',
        places ? h('section', {class: 'card'}, h('h2', {}, 'Where buffers lie, over the program'), places) : '',
        h('section', {class: 'card flush'}, h('h2', {class: 'pad'}, 'Each buffer at the peak'), bufferTable(ctx, buffers, csv('buffers'), open)));
  },
};
