// SPDX-License-Identifier: Apache-2.0
// Op profile: the tree of programs, categories and ops as a flame graph.

import {h, announce} from '../lib/dom.js';
import * as format from '../lib/format.js';
import {Flame, hash, others} from '../lib/flame.js';
import {empty} from '../lib/notes.js';
import {reach} from '../lib/detail.js';
import * as router from '../lib/router.js';
import {opLinks} from '../lib/programs.js';
import {about, answerOf, compared, opName, pairs, partners, scaleOf} from '../lib/base.js';
import {signed, times} from '../lib/sides.js';

const GROUPS = {
  program: ['byProgram', 'Program'],
  category: ['byCategory', 'Category'],
  provenance: ['byProvenance', 'Provenance'],
  op: ['byOp', 'Framework op']
};
const DEEPEST = 200;

// The answer's tree as nodes of the flame graph; bounded, for it comes from a profile.
function tree(raw) {
  const root = {
    raw,
    name: raw.name || '',
    value: Number(raw.metrics?.rawTime) || 0,
    parent: null,
    depth: 0,
    children: []
  };
  const queue = [root];
  for (let i = 0; i < queue.length; i++) {
    const node = queue[i];
    if (node.depth >= DEEPEST) continue;
    for (const child of node.raw.children || []) {
      const value = Number(child.metrics?.rawTime) || 0;
      if (!(value > 0)) continue;  // instructions inside a fusion have no time of their own
      const next =
          {raw: child, name: child.name || '', value, parent: node, depth: node.depth + 1, children: []};
      node.children.push(next);
      queue.push(next);
    }
  }
  for (const node of queue.reverse()) {  // from the leaves up: a node is as wide as its children are
    node.children.sort((a, b) => b.value - a.value);
    const sum = node.children.reduce((t, c) => t + c.value, 0);
    if (sum > node.value) node.value = sum;  // never draw a child outside its parent
  }
  return root;
}

// What compare calls the longest op of a node.
function mainOp(node) {
  while (node.children.length) node = node.children[0];
  return opName(node.raw.xla?.provenance || '', node.name);
}

// Gives each node below NODE the time that its like below BASE took, times SCALE: of nodes with one name in one place
// (programs without their ids) the greatest is like the greatest, then nodes are alike whose longest ops BOTH matched.
function join(node, base, scale, both) {
  const plain = (n) => n.name.replace(/\(\d+\)$/, ''), waiting = [[node, base]], renamed = partners(both?.ops, 'op');
  const rounds = [[plain, (n) => [plain(n)]], [mainOp, (n) => renamed(mainOp(n))]];
  while (waiting.length) {
    const [here, there] = waiting.pop(), [likes] = pairs(here.children, there?.children || [], rounds);
    here.before = there ? there.value * scale : 0;
    if (there && here.parent && plain(here) !== plain(there)) here.former = there.name;
    for (const c of here.children) waiting.push([c, likes.get(c) || null]);
  }
}

// By how much a node took longer than its like in the base, in words; '' without a base.
function change(node) {
  if (node.before === undefined) return '';
  return node.before > 0 ? `${signed(format.ps)(node.value - node.before)} (${times((node.value / node.before - 1) * 100)})` : 'not in the base';
}

function pathOf(node) {
  const out = [];
  for (let n = node; n.parent; n = n.parent)
    out.unshift(n.others || String(n.parent.children.indexOf(n)));
  return out.join('.');
}

function walk(root, path) {
  let node = root;
  for (const i of path ? path.split('.') : []) {
    const part = /^(\d+)-(\d+)$/.exec(i)?.slice(1).map(Number);
    const next = part ? node.children[part[0]] && others(node, ...part) : node.children[Number(i)];
    if (!next || !(next.value > 0)) break;
    node = next;
  }
  return node;
}

// The node of an instruction, by its name; the widest of several.
function nodeOf(root, op) {
  let best = null;
  const queue = [root];
  for (let i = 0; i < queue.length; i++) {
    const n = queue[i];
    if (n.raw.xla && (n.name === op || /^%?(\S+) = /.exec(n.raw.xla.expression || '')?.[1] === op) && n.value > (best?.value || 0))
      best = n;
    queue.push(...n.children);
  }
  return best;
}

function category(node) {
  for (let n = node; n; n = n.parent)
    if (n.raw.xla?.category) return n.raw.xla.category;
  return node.name;
}

function facts(ctx, node, total) {
  const m = node.raw.metrics || {}, x = node.raw.xla || {};
  const source = x.sourceInfo && x.sourceInfo.fileName ?
      x.sourceInfo.stackFrame || `${x.sourceInfo.fileName}:${x.sourceInfo.lineNumber}` : '';
  const op = /^%?(\S+) = /.exec(x.expression || '');
  const bandwidth = m.bandwidthUtils || [];
  const out =
      [['Time', `${format.ps(node.value)} (${format.fraction(total ? node.value / total : NaN)} of all)`]];
  if (node.before !== undefined) out.push(['Base', format.ps(node.before)], ['Difference', change(node)]);
  if (node.former) out.push(['Name in the base', node.former]);
  if (node.parent) out.push(['Of its parent', format.fraction(node.value / node.parent.value)]);
  if (m.occurrences)
    out.push(['Count', `${format.count(m.occurrences)}, ${format.ps(Number(m.avgTimePs))} each`]);
  if (m.flops) out.push(['FLOPS utilization', format.fraction(m.flops * (total ? total / node.value : 1))]);
  ['HBM', 'On-chip read', 'On-chip write'].forEach((label, i) => {
    if (bandwidth[i]) out.push([`${label} bandwidth`, format.fraction(bandwidth[i])]);
  });
  if (x.category) out.push(['Category', x.category]);
  if (x.provenance) out.push(['Provenance', x.provenance]);
  if (source) out.push(['Source', source]);
  if (x.expression) out.push(['Expression', x.expression]);
  if (op) out.push(['See also', opLinks(ctx, {program: x.programId, op: op[1]}, 'op_profile')]);
  const layout = node.raw.layout;
  if (layout && Array.isArray(layout.dimensions) && layout.dimensions.length)
    out.push([
      'Layout',
      layout.dimensions.map((d) => `${d.semantics || '?'} ${d.size} (aligned ${d.alignment})`).join(', ')
    ]);
  return out;
}

function details(ctx, node, total, enter) {
  const inner = (node.raw.children || []).filter((c) => !(Number(c.metrics?.rawTime) > 0));
  return [
    h('h2', {class: 'breakable'}, node.name || '(no name)'),
    h('dl', {class: 'facts wide'},
        facts(ctx, node, total).map(([k, v]) => [h('dt', {}, k), h('dd', {class: 'breakable'}, v)])),
    node.children.length ?
        h('table', {class: 'plain', 'aria-label': `Parts of ${node.name}`},
            h('thead', {},
                h('tr', {}, h('th', {scope: 'col', class: 'num'}, 'Share'),
                    h('th', {scope: 'col'}, 'Largest parts'), node.before === undefined ? '' : h('th', {scope: 'col', class: 'num'}, 'To the base'))),
            h('tbody', {},
                node.children.slice(0, 12).map(
                    (c) => h('tr', {},
                        h('td', {class: 'num barred', vars: {'--part': `${c.value / node.value * 100}%`}},
                            format.fraction(c.value / node.value)),
                        h('td', {class: 'clip'},
                            h('button', {type: 'button', class: 'link', onclick: () => enter(c)},
                                c.name || '(no name)')),
                        c.before === undefined ? '' : h('td', {class: 'num'}, change(c)))))) :
        '',
    inner.length ? h('details', {},
                       h('summary', {}, `${inner.length} fused instruction${inner.length === 1 ? '' : 's'}`),
                       h('ul', {class: 'breakable'}, inner.slice(0, 100).map((c) => h('li', {}, c.name)))) :
                   '',
  ];
}

export default {
  title: 'Op profile',
  tool: 'op_profile',
  async render(ctx) {
    const group = GROUPS[ctx.params.get('group')] ? ctx.params.get('group') : 'program';
    const idle = ctx.params.get('idle') === '1';
    const heat = ctx.params.get('color') === 'flops', changes = ctx.base && !ctx.params.get('color');
    const [data, both, base] = await Promise.all([ctx.load('op_profile', {group_by: group}), compared(ctx), answerOf(ctx, 'op_profile', {group_by: group})]);
    const [key] = GROUPS[group];
    const rawOf = (answer) => answer && (idle ? answer[key] : answer[`${key}ExcludeIdle`] || answer[key]);
    const raw = rawOf(data);
    const choose = (id, label, name, options, value) => {
      const select = h('select', {id, onchange: () => ctx.update({[name]: select.value, node: ''}, true)},
          options.map(([v, text]) => h('option', {value: v}, text)));
      select.value = value;
      return h('label', {class: 'check'}, `${label} `, select);
    };
    ctx.root.append(h('div', {class: 'title'}, h('h1', {}, 'Op profile'),
        choose('group', 'Group by', 'group', Object.entries(GROUPS).map(([v, [, text]]) => [v, text]), group),
        choose('color', 'Colour', 'color',
            [...(ctx.base ? [['', 'Difference'], ['category', 'Category']] : [['', 'Category']]), ['flops', 'FLOPS utilization']],
            ctx.params.get('color') || ''),
        h('label', {class: 'check'}, h('input', {
          type: 'checkbox',
          id: 'idle',
          checked: idle,
          onchange: (e) => ctx.update({idle: e.target.checked ? '1' : '', node: ''}, true)
        }),
            ' Idle time'),
        h('span', {class: 'muted'}, data && data.deviceType ? format.device(data.deviceType) : '')));
    const root = raw ? tree(raw) : null;
    if (!root || !root.children.length) {
      ctx.root.append(empty('No op times in this profile',
          'The op profile needs XLA’s ops on a device or a CPU. The trace shows all recorded events; Kernels what ran on a GPU without XLA.'));
      return;
    }
    root.name = 'All';
    if (base) join(root, tree(rawOf(base) || {}), scaleOf(both), both);
    const total = root.value;
    const crumbs = h('nav', {class: 'crumbs', 'aria-label': 'Path in the op profile'});
    const panel = h('section', {class: 'card op-detail', 'aria-label': 'Details of the op'});
    const enter = (node) => flame.enter(node);
    const describe = (node) => {
      panel.replaceChildren(...details(ctx, node, total, enter));
      requestAnimationFrame(() => reach(panel));
    };
    const path = (node) => {
      const all = [];
      for (let n = node; n; n = n.parent) all.unshift(n);
      crumbs.replaceChildren(
          ...all
              .map((n, i) => [i ? h('span', {'aria-hidden': 'true'}, '›') : '',
                       n === node ?
                           h('span', {'aria-current': 'location'}, n.name) :
                           h('button', {type: 'button', class: 'link', onclick: () => enter(n)}, n.name)])
              .flat());
    };
    const flame = new Flame({
      root,
      label: 'Op profile. Arrow keys move, Enter goes in, Escape goes out.',
      tone: (n) => {
        if (heat)
          return {
            heat: Math.max(0, Math.min(1, (n.raw.metrics?.flops || 0) * (n.value ? total / n.value : 0)))
          };
        if (n.others) return 14;
        if (changes && n.before !== undefined) return {heat: Math.max(0, Math.min(1, n.before > 0 ? n.value / n.before - 1 : 1))};
        if (n.name === 'IDLE') return 15;
        return n.depth === 0 ? 14 : hash(category(n)) % 12;
      },
      text: (n) => ({
        title: n.name || '(no name)',
        detail: [`${format.ps(n.value)}, ${format.fraction(n.value / total)}`, change(n)].filter(Boolean).join(', ')
      }),
      onZoom: (n) => {
        path(n);
        ctx.update({node: pathOf(n), op: ''}, 'push');
      },
      onSelect: (n, chosen) => {
        describe(n);
        if (chosen) announce(`${n.name}, ${format.ps(n.value)}, ${format.fraction(n.value / total)}`);
      },
    });
    const start = (ctx.params.get('op') && nodeOf(root, ctx.params.get('op'))) || walk(root, ctx.params.get('node'));
    flame.show(start);
    path(start);
    describe(start);
    ctx.root.append(base ? about(ctx, both) : '', crumbs, h('div', {class: 'card flame-card'}, flame.element), panel,
        h('p', {}, h('a', {href: router.link(ctx.session.name, 'hlo_ops', {host: ctx.hosts})}, 'All ops in a table')));
  },
};
