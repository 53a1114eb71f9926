// SPDX-License-Identifier: Apache-2.0
// Graph: an HLO program, a computation of it, or what is around an instruction, laid out by the daemon.

import {h, announce} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import * as router from '../lib/router.js';
import {empty, loading, problem} from '../lib/notes.js';
import {detail} from '../lib/detail.js';
import {parse} from '../lib/drawing.js';
import {Graph} from '../lib/graph.js';
import {programs, chosen, choice, missing, opLinks} from '../lib/programs.js';

const WIDTHS = [1, 2, 3, 4, 5, 7, 10];
const FOLDED_FROM = 1500;  // instructions from which on fusions are drawn without their inside
const MOST_HITS = 40;

// Instructions and computations of a program's text: {lines: name -> [text, computation], names: [name]}.
export function outline(text) {
  const lines = new Map(), names = [];
  let computation = '';
  for (const line of text.split('\n')) {
    const head = /^(?:ENTRY )?%?([^\s(]+).*\{$/.exec(line), op = /^\s+(?:ROOT )?%?(\S+) = /.exec(line);
    if (op)
      lines.set(op[1], [line.trim(), computation]);
    else if (head && !line.startsWith('HloModule'))
      names.push(computation = head[1]);
  }
  return {lines, names: [...names, ...lines.keys()]};
}

// What a node's tip says of the op: its framework op, then where it comes from.
function factsOfTip(tip) {
  const [name, ...source] = tip.split('\n');
  return [['Framework op', name.trim()], ['Source', source.join('\n').replace(/^source: /, '').trim()]].filter(([, v]) => v);
}

class Page {
  constructor(ctx, module) {
    this.ctx = ctx;
    this.module = module;
    this.node = ctx.params.get('node') || '';
    const width = Number(ctx.params.get('width'));
    this.reach = WIDTHS.includes(width) ? width : 3;
    const fusions = ctx.params.get('fusions');
    this.folds = fusions ? fusions === 'folded' : !this.node && module.instructions >= FOLDED_FROM;
    this.side = detail('Op');
    this.place = h('div', {class: 'card graph-card'});
    this.note = h('p', {class: 'muted small graph-note', role: 'status'});
    this.hits = h('datalist', {id: 'ops'});
    this.graph = null;
  }

  text(type, options) {
    return api.text(this.ctx.session.name, 'graph_viewer', this.ctx.hosts, {module_name: this.module.module, type, ...options},
        this.ctx.signal);
  }

  // The program's text, asked for once and only when somebody needs it.
  outline() {
    return (this.known ||= this.text('short_txt').then(outline));
  }

  controls(list) {
    const {ctx} = this;
    const input = h('input', {
      type: 'search',
      id: 'find',
      list: 'ops',
      placeholder: 'Op or computation',
      'aria-label': 'Find an op or a computation',
      value: this.node,
      spellcheck: 'false',
      autocomplete: 'off',
      oninput: () => this.suggest(input.value),
      onkeydown: (e) => {
        if (e.key === 'Enter') this.find(input.value.trim());
      }
    });
    const around = h('select', {id: 'width', onchange: () => ctx.update({width: around.value}, true)},
        WIDTHS.map((n) => h('option', {value: String(n)}, String(n))));
    around.value = String(this.reach);
    return h('div', {class: 'bar'},
        choice({list, value: this.module.module, id: 'program', label: 'Program',
          onChoose: (label) => ctx.update({module: label, program: '', node: '', fusions: ''}, true)}),
        input, this.hits, h('button', {type: 'button', onclick: () => this.find(input.value.trim())}, 'Find'),
        this.node ? h('label', {class: 'check'}, 'Steps around it ', around) : '',
        this.node ? h('button', {type: 'button', onclick: () => ctx.update({node: '', width: ''}, true)}, 'Whole program') : '',
        h('label', {class: 'check'}, h('input', {
          type: 'checkbox',
          id: 'fusions',
          checked: !this.folds,
          onchange: (e) => ctx.update({fusions: e.target.checked ? 'open' : 'folded'}, true)
        }),
            ' Insides of fusions'));
  }

  async suggest(text) {
    const {names} = await this.outline().catch(() => ({names: []}));
    const hits = text ? names.filter((n) => n.includes(text)).slice(0, MOST_HITS) : [];
    this.hits.replaceChildren(...hits.map((n) => h('option', {value: n})));
  }

  // What is in the picture is shown there; else the picture becomes that of what is around it.
  find(name) {
    if (!name) return;
    if (this.graph && this.graph.go(name)) {
      this.open(this.graph.selected);
      this.graph.canvas.focus({preventScroll: true});
    } else
      this.ctx.update({node: name}, true);
  }

  async draw() {
    const mine = new AbortController();
    const stop = () => mine.abort();
    this.ctx.signal.addEventListener('abort', stop);
    this.place.replaceChildren(h('div', {class: 'graph-wait'}, loading('The graph is laid out …'),
        h('button', {type: 'button', id: 'cancel', onclick: stop}, 'Cancel')));
    try {
      const options = {module_name: this.module.module, type: 'graph', format: 'html', node_name: this.node,
        graph_width: this.reach, merge_fusion: this.folds};
      const text = await api.text(this.ctx.session.name, 'graph_viewer', this.ctx.hosts, options, mine.signal);
      this.show(parse(text));
    } catch (e) {
      if (this.ctx.signal.aborted) return;
      const again = h('button', {type: 'button', onclick: () => this.draw()}, 'Lay it out again');
      if (e.name === 'AbortError')
        this.place.replaceChildren(empty('Cancelled', 'The graph was not laid out. Choose an op or a computation for a smaller one.'), again);
      else
        this.place.replaceChildren(problem('Graph', e, () => this.draw(), this.ctx.meant(e)));
    } finally {
      this.ctx.signal.removeEventListener('abort', stop);
    }
  }

  show(drawing) {
    if (!drawing || !drawing.nodes.length) {
      this.place.replaceChildren(empty('The graph has no ops', 'Choose another program or computation above.'));
      return;
    }
    const what = drawing.title.join(', ');
    const many = `${format.count(drawing.nodes.length)} op${drawing.nodes.length === 1 ? '' : 's'}`;
    this.graph = new Graph({
      drawing,
      label: `${what}: ${many}`,
      onOpen: (box) => this.open(box),
    });
    if (this.node) this.graph.go(this.node);
    this.note.textContent = `${what}: ${many}, ${format.count(drawing.edges.length)} edges.${this.folds ?
        ` Fusions are folded${this.ctx.params.get('fusions') ? '' : ', as the program is large'}: they are drawn without their contents.` : ''}`;
    this.place.replaceChildren(this.graph.element);
    performance.mark('graph-shown');
    announce(`Graph of ${many}`);
  }

  opButtons(names) {
    return names.map((n, i) => [i ? ', ' : '', h('button', {type: 'button', class: 'link', onclick: () => this.find(n)}, n)]);
  }

  async open(box) {
    const {op} = box;
    if (!op) return;
    const links = () => [h('a', {
      href: router.link(this.ctx.session.name, 'graph',
          {host: this.ctx.hosts, module: this.module.module, node: op, width: this.reach})
    }, 'What is around it'), ', ', opLinks(this.ctx, {module: this.module.module, op}, 'graph')];
    const facts = [...factsOfTip(box.tip), ['See also', links()]];
    this.side.show(op, [['Instruction', 'Loading …'], ...facts]);
    const asked = this.asked = {};
    try {
      const [known, near] = await Promise.all([this.outline(), this.text('adj_nodes', {node_name: op}).then(JSON.parse)]);
      if (this.asked !== asked || this.ctx.signal.aborted) return;
      const [text, computation] = known.lines.get(op) || ['', ''];
      const own = [['Instruction', text], ['Computation', computation && this.opButtons([computation])]];
      for (const [label, names] of [['Operands', near.operand_names], ['Users', near.consumer_names]])
        if (names && names.length) own.push([label, this.opButtons(names.slice(0, 60))]);
      this.side.show(op, [...own, ...facts]);
    } catch (e) {
      if (e.name !== 'AbortError' && this.asked === asked) this.side.show(op, [['Instruction', e.message], ...facts]);
    }
  }
}

export default {
  title: 'Graph',
  tool: 'graph_viewer',
  async render(ctx) {
    const list = await programs(ctx);
    const module = chosen(ctx, list);
    ctx.root.append(h('h1', {}, 'Graph'));
    if (!module) {
      ctx.root.append(list.length ? choice({list, value: '', id: 'program', label: 'Program', none: 'choose one',
        onChoose: (label) => ctx.update({module: label, program: '', node: ''}, true)}) : '',
          missing(ctx, list));
      return;
    }
    const page = new Page(ctx, module);
    ctx.root.append(page.controls(list), page.note, page.place, page.side.element);
    page.draw();  // the frame is there at once, the picture when it is laid out
  },
};
